"""What each exception of the e2b SDK means to us."""

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

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
    SandboxRateLimitError,
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
    (RateLimitException, SandboxRateLimitError, "the sandbox service takes no more requests for the moment"),
    (ServiceBusyException, SandboxUnreachableError, "the sandbox service is busy"),
    (TemplateException, SandboxTemplateError, "the template cannot be used"),
    (TimeoutException, SandboxUnreachableError, "the sandbox did not answer in time"),
    (httpx.TransportError, SandboxUnreachableError, "the sandbox service cannot be reached"),
)
_STATUSES: dict[int, tuple[type[SandboxError], str]] = {
    404: (SandboxTemplateError, "the template is unknown"),
    409: (SandboxConflictError, "the sandbox is between two states"),
    422: (SandboxConflictError, "the request contradicts an earlier one"),
    429: (SandboxRateLimitError, "the sandbox service takes no more requests for the moment"),
    502: (SandboxUnreachableError, "the sandbox service cannot be reached"),
    503: (SandboxUnreachableError, "the sandbox service is busy"),
    504: (SandboxUnreachableError, "the sandbox service did not answer in time"),
}


_QUOTA = re.compile(r"concurrent|quota|maximum number|\bcredits?\b", re.IGNORECASE)
"""What a 429 says that is no matter of the pace: waiting helps once other sandboxes have ended."""
_STATUS = re.compile(r"([45]\d\d)[: ]")
"""How the SDKs begin the text of an error of a sandbox's; they give the number nowhere else (e2b 2.63.0)."""
_ADVISES = frozenset({429, 503})
_ANSWER_NAMES = ("res", "r", "response")
_SECONDS = re.compile(r"\d{1,10}(\.\d{1,6})?", re.ASCII)


def meaning(exc: Exception) -> SandboxError:
    """Translate an exception of the SDK; `raise meaning(exc) from exc`."""
    said = _meaning(exc)
    said.retry_after_s = _advice(exc)
    return said


def _meaning(exc: Exception) -> SandboxError:
    if isinstance(exc, RateLimitException) and _QUOTA.search(str(exc).partition(" - ")[2] or str(exc)):
        return SandboxQuotaError(f"a limit of the sandbox account is reached: {exc}")
    for theirs, ours, words in _MEANINGS:
        if isinstance(exc, theirs):
            # After its first sentence the SDK advises whoever wrote the program, and not a model.
            said = str(exc).partition(". ")[0] if isinstance(exc, TimeoutException) else exc
            return ours(f"{words}: {said}")
    status = exc.status_code if isinstance(exc, SandboxException) else None
    if type(exc) is SandboxException and status is None and (found := _STATUS.match(str(exc))):
        # A sandbox's daemon answers 404 of a file, and never of a template.
        status = int(found[1]) if found[1] != "404" else None
    ours, words = _STATUSES.get(status or 0, (SandboxError, "the sandbox service failed"))
    return ours(f"{words}: {exc or type(exc).__name__}")


def _advice(exc: Exception) -> float | None:
    """Return how long the answer behind an exception asks to wait, in seconds.

    The SDK drops the answer's headers; the frame that raised still holds the answer.
    """
    for raised in (exc, exc.__cause__ or exc.__context__):
        for frame, _ in traceback.walk_tb(raised.__traceback__ if raised else None):
            for answer in map(frame.f_locals.get, _ANSWER_NAMES):
                status = getattr(answer, "status_code", None) or getattr(answer, "status", None)
                if status in _ADVISES and (headers := getattr(answer, "headers", None)) is not None:
                    return seconds_of(headers.get("retry-after"), headers.get("date"))
    return None


def seconds_of(retry_after: str | None, date: str | None = None) -> float | None:
    """Return what a `Retry-After` says, in seconds from now; None where it says nothing sensible.

    Args:
        retry_after: the header: seconds, or a date.
        date: the answer's `Date`, of the clock that the other date is by; default is this machine's clock.

    Source: RFC 9110, 10.2.3.
    """
    said = (retry_after or "").strip()
    if _SECONDS.fullmatch(said):
        return float(said)
    when = _date(said)
    return None if when is None else max((when - (_date(date) or datetime.now(UTC))).total_seconds(), 0.0)


def _date(text: str | None) -> datetime | None:
    try:
        found = parsedate_to_datetime((text or "")[:100])
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


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
