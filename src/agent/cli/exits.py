"""Exit codes: part of the interface, also printed by `--help`."""

OK = 0
FAILED = 1
USAGE = 2
PLATFORM = 3
INTERRUPTED = 130
READER_LEFT = 141
"""As a shell has it for SIGPIPE: `| head` has read enough."""

HELP = (
    "Exit codes: 0 passed or already green; 1 failed, nothing tested, rejected, no progress, budget or "
    "set-up failed, left waiting for an answer, or a chat without a whole one; "
    "2 wrong usage, settings or input; 3 server or sandbox failure; 130 interrupted."
)

_GREEN = frozenset({"passed", "already_green"})


def of_status(status: str) -> int:
    """Return the exit code of a finished repair by its `status`."""
    return OK if status in _GREEN else FAILED
