"""What is said of a sandbox: to clients on the `custom` stream, and to the model when one was lost."""

from typing import Any

from agent.sandbox.manager import Acquired

LOSS = (
    "Note: the sandbox of this thread was lost and a new one was made. Files, variables and running programs "
    "of the old one are gone; make again what you need, and say so if it matters to the user."
)
LOST_IN_CALL = (
    "error: the sandbox was lost during this call and a new one was made. Files, variables and running "
    "programs are gone. The call was not repeated; whether it had an effect outside the sandbox is unknown."
)
_WORDS = {
    "created": "A new sandbox was made.",
    "connected": "Connected to the thread's sandbox.",
    "replaced": "The thread's sandbox was gone: a new one was made; files and variables are lost.",
}


def announce(runtime: Any, acquired: Acquired) -> None:
    """Tell clients how the sandbox was come by, unless it was at hand."""
    if acquired.how in _WORDS:
        runtime.stream_writer(notice(acquired.how, acquired.sandbox_id, _WORDS[acquired.how]))


def notice(event: str, sandbox_id: str, message: str) -> dict[str, str]:
    """Return an event about a sandbox."""
    return {"type": "sandbox", "event": event, "sandbox_id": sandbox_id, "message": message}
