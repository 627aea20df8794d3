"""What can go wrong, as one tree.

AgentError
├── SettingsError               a variable has a value that cannot be used; the server does not start
├── ModelError                  the chat model cannot be built: unknown name, missing key or package
├── InputError                  a run's input cannot be worked with; nothing was started
└── SandboxError                the sandbox service failed; never dressed up as a command's output
    ├── SandboxKeyError         no key, or the service refused it
    ├── SandboxQuotaError       the account's limit of running sandboxes is reached
    ├── SandboxRateLimitError   the service takes no more requests for the moment: nothing was done
    ├── SandboxTemplateError    the template is unknown, or lacks what the call needs
    ├── SandboxGoneError        the sandbox was killed or never existed: what it held is lost
    ├── SandboxUnreachableError it may still be alive, and may hold the only copy: retried, never replaced
    ├── SandboxAnswerError      what it answered is too long, or no answer: anything there may have said it
    ├── SandboxConflictError    it is between two states, or the request contradicts an earlier one
    └── SandboxForeignError     the id names a sandbox of another thread or deployment: left alone
"""

import traceback
import unicodedata
from typing import TYPE_CHECKING

MAX_PROBLEMS = 20
"""That are listed, of all that are wrong with one value."""

if TYPE_CHECKING:
    from pydantic import ValidationError


class AgentError(RuntimeError):
    """Base of every error this package raises on purpose; its text is fit for a user to read.

    A RuntimeError, since the LangGraph server passes the text of a few built-in classes on to clients and
    replaces that of all others with "An internal error occurred".

    The text is one line: it may quote what a client, a sandbox or a service said, and ends up in logs.
    """

    def __init__(self, text: object = "") -> None:
        super().__init__(one_line(text))


class SettingsError(AgentError):
    """One line for each variable that has a value that cannot be used."""

    def __init__(self, text: str = "") -> None:
        RuntimeError.__init__(self, text)


class ModelError(AgentError):
    """The chat model cannot be built."""


class InputError(AgentError):
    """A run's input cannot be worked with."""


class SandboxError(AgentError):
    """The sandbox service failed."""

    retry_after_s: float | None = None
    """How long the service asks to wait before the next try, in seconds; None where it does not say."""


class SandboxKeyError(SandboxError):
    """There is no key for the sandbox service, or it refused the key."""


class SandboxQuotaError(SandboxError):
    """A limit of the account is reached."""


class SandboxRateLimitError(SandboxError):
    """The service takes no more requests for the moment; it did nothing."""


class SandboxTemplateError(SandboxError):
    """The template is unknown, or lacks what the call needs."""


class SandboxGoneError(SandboxError):
    """The sandbox was killed or never existed; its files and variables are lost."""


class SandboxUnreachableError(SandboxError):
    """The sandbox did not answer; whether it is alive is not known."""


class SandboxAnswerError(SandboxError):
    """What came out of the sandbox is more than is taken, or not what was asked for."""


class SandboxConflictError(SandboxError):
    """The sandbox is between two states, or the request contradicts an earlier one."""


class SandboxForeignError(SandboxError):
    """The id names a sandbox that belongs to another thread or deployment."""


def one_line(text: object) -> str:
    """Return a foreign text with its line feeds, control and invisible characters spelled out.

    In a log, which may be read as lines, it could pass for another entry.
    """
    return "".join(one if _is_shown(one) else one.encode("unicode_escape").decode() for one in str(text))


def _is_shown(one: str) -> bool:
    category = unicodedata.category(one)
    return category[0] != "C" and category not in {"Zl", "Zp"}


def logged(exc: BaseException) -> str:
    """Return an exception with its traceback for a log; no line of it can pass for another entry."""
    lines = "".join(traceback.format_exception(exc)).splitlines()
    return "\n".join(f"| {one_line(line)}" for line in lines)


def problems(exc: "ValidationError", whole: str) -> str:
    """Return what pydantic found wrong, each with where it stands, on one line.

    Args:
        exc: what it raised.
        whole: what the value itself is called, where that is wrong.
    """
    each = (f"{_place(one['loc']) or whole}: {one['msg']}" for one in exc.errors()[:MAX_PROBLEMS])
    return one_line("; ".join(each))


def _place(loc: tuple[int | str, ...]) -> str:
    # Between the names stand pydantic's own for kinds, such as list[str], where there are several.
    return ".".join(str(part) for part in loc if not (isinstance(part, str) and "[" in part))
