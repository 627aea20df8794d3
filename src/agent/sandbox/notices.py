"""What is said of a sandbox: to clients on the `custom` stream, and to the model when one was lost."""

from typing import TYPE_CHECKING, Any

from langgraph.config import get_stream_writer

from agent.errors import SandboxError

if TYPE_CHECKING:
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


def announce(runtime: Any, acquired: "Acquired") -> None:
    """Tell clients how the sandbox was come by, unless it was at hand."""
    if acquired.how in _WORDS:
        runtime.stream_writer(notice(acquired.how, acquired.sandbox_id, _WORDS[acquired.how]))


def say_waiting(wait_s: float, why: SandboxError) -> None:
    """Tell clients that a request to the service is sent again later; where no run is under way, nobody.

    Args:
        wait_s: how much later, in seconds.
        why: what the service answered.
    """
    try:
        writer = get_stream_writer()
    # Outside a run there is no writer: a RuntimeError, or in a callback of a run a missing key.
    except (RuntimeError, KeyError):
        return
    writer(notice("waiting", "", f"Waiting {wait_s:.0f} s before the next try: {why}"))


def notice(event: str, sandbox_id: str, message: str) -> dict[str, str]:
    """Return an event about a sandbox."""
    return {"type": "sandbox", "event": event, "sandbox_id": sandbox_id, "message": message}
