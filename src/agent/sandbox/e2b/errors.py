"""What each exception of the e2b SDK means to us."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from e2b import (
    AuthenticationException,
    FileNotFoundException,
    GuestUnresponsiveException,
    InvalidArgumentException,
    RateLimitException,
    SandboxException,
    SandboxNotFoundException,
    ServiceBusyException,
    TemplateException,
    TimeoutException,
)
from e2b.exceptions import SandboxNotRunningException, SandboxUnreachableException

from agent.errors import (
    SandboxConflictError,
    SandboxError,
    SandboxGoneError,
    SandboxKeyError,
    SandboxQuotaError,
    SandboxTemplateError,
    SandboxUnreachableError,
)

# The order decides: not-running and unreachable are subclasses of TimeoutException, and nearly all are
# SandboxExceptions. A plain SandboxException is told apart by its status code.
_MEANINGS: tuple[tuple[type[Exception], type[SandboxError], str], ...] = (
    (SandboxNotFoundException, SandboxGoneError, "the sandbox is gone"),
    (SandboxNotRunningException, SandboxGoneError, "the sandbox is gone"),
    (SandboxUnreachableException, SandboxUnreachableError, "the sandbox did not answer"),
    (GuestUnresponsiveException, SandboxUnreachableError, "the paused sandbox cannot be woken"),
    (AuthenticationException, SandboxKeyError, "the sandbox service refused the key (E2B_API_KEY)"),
    (RateLimitException, SandboxQuotaError, "a limit of the sandbox account is reached"),
    (ServiceBusyException, SandboxUnreachableError, "the sandbox service is busy"),
    (TemplateException, SandboxTemplateError, "the template cannot be used"),
    (TimeoutException, SandboxUnreachableError, "the sandbox did not answer in time"),
    (httpx.TransportError, SandboxUnreachableError, "the sandbox service cannot be reached"),
)
_STATUSES: dict[int, tuple[type[SandboxError], str]] = {
    404: (SandboxTemplateError, "the template is unknown"),
    409: (SandboxConflictError, "the sandbox is between two states"),
    422: (SandboxConflictError, "the request contradicts an earlier one"),
    502: (SandboxUnreachableError, "the sandbox service cannot be reached"),
    504: (SandboxUnreachableError, "the sandbox service did not answer in time"),
}


def meaning(exc: Exception) -> SandboxError:
    """Translate an exception of the SDK; `raise meaning(exc) from exc`."""
    for theirs, ours, words in _MEANINGS:
        if isinstance(exc, theirs):
            # After its first sentence the SDK advises whoever wrote the program, and not a model.
            said = str(exc).partition(". ")[0] if isinstance(exc, TimeoutException) else exc
            return ours(f"{words}: {said}")
    status = exc.status_code if isinstance(exc, SandboxException) else None
    ours, words = _STATUSES.get(status or 0, (SandboxError, "the sandbox service failed"))
    return ours(f"{words}: {exc or type(exc).__name__}")


@contextmanager
def translated() -> Iterator[None]:
    """Raise what the SDK raises as one of our errors."""
    try:
        yield
    except SandboxError:
        raise
    # Not only the SDK's classes: an error body that is not JSON escapes as a JSONDecodeError, and a lost
    # connection as its transport's own exception.
    except Exception as exc:
        raise meaning(exc) from exc


@contextmanager
def translated_files(path: str, wrong_kind: type[OSError]) -> Iterator[None]:
    """Raise what the SDK raises about a path as the standard library's errors, all else as ours.

    Args:
        path: what the work is about, for the message.
        wrong_kind: what it means when the service refuses the path: IsADirectoryError where a file is
            needed, NotADirectoryError where a folder is.
    """
    try:
        yield
    except SandboxError:
        raise
    except FileNotFoundException as exc:
        raise FileNotFoundError(f"there is no {path}") from exc
    except InvalidArgumentException as exc:
        raise wrong_kind(f"{path}: {exc}") from exc
    except Exception as exc:
        raise meaning(exc) from exc
