"""What can go wrong between a client and a LangGraph server.

    ClientError
    ├── UnreachableError     no answer from the server
    ├── RefusedError         the server answered, and refused (status code kept)
    │   ├── NotFoundError    404: no such thread, run or assistant
    │   └── BusyError        409: another run works on this thread
    ├── StaleAnswerError     the answer names a question that is not open
    ├── StreamLostError      the stream broke and could not be joined again in time
    └── DeadlineError        the caller's limit passed; the run goes on

A run that fails on the server is no error here: it is a `Failed` event.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx  # langgraph-sdk lets httpx's own errors through when a connection fails
from langgraph_sdk.errors import APIError


@dataclass(frozen=True, slots=True)
class Where:
    """What an error is about: a server, and as far as known the thread and the run."""

    server: str
    thread_id: str | None = None
    run_id: str | None = None

    def __str__(self) -> str:
        parts = [f"server {self.server}"]
        if self.thread_id:
            parts.append(f"thread {self.thread_id}")
        if self.run_id:
            parts.append(f"run {self.run_id}")
        return ", ".join(parts)


class ClientError(Exception):
    """A request could not be carried out; says where, and what to do next."""

    def __init__(self, problem: str, where: Where, next_step: str) -> None:
        super().__init__(f"{problem} ({where}). {next_step}")
        self.problem = problem
        self.where = where
        self.next_step = next_step


class UnreachableError(ClientError):
    """The server gave no answer; whether it got the request is unknown."""


class RefusedError(ClientError):
    """The server refused the request; nothing was started."""

    def __init__(self, problem: str, where: Where, next_step: str, status_code: int) -> None:
        super().__init__(problem, where, next_step)
        self.status_code = status_code


class NotFoundError(RefusedError):
    """The thread, run or assistant does not exist on this server."""


class BusyError(RefusedError):
    """Another run works on the thread; nothing was started."""


class StaleAnswerError(ClientError):
    """An answer names a question that is not open; nothing was sent.

    `open_now` has the ids of those that are.
    """

    def __init__(self, problem: str, where: Where, next_step: str, open_now: tuple[str, ...] = ()) -> None:
        super().__init__(problem, where, next_step)
        self.open_now = open_now


class StreamLostError(ClientError):
    """The stream broke and could not be joined again; the run may go on at the server."""


class DeadlineError(ClientError):
    """The caller's limit passed; the run goes on at the server."""


_LONGEST_REASON = 500
_NEXT_STEP = {
    400: "Check the input and the context that were sent.",
    401: "Send the API key this server asks for.",
    403: "Use a key that may do this.",
    404: "List the threads, or start a new one.",
    409: "Wait for the other run, cancel it, or use another thread.",
    413: "Send less.",
    422: "Check the graph's name and the input.",
    429: "Try again a little later.",
}


@contextmanager
def explained(where: Where) -> Iterator[None]:
    """Turn what the SDK raises within the block into a `ClientError` that says where and what next.

    Args:
        where: what the request is about.

    Raises:
        RefusedError: the server refused; the subclass by its status code.
        UnreachableError: the server could not be reached or broke off.
    """
    try:
        yield
    except httpx.HTTPError as exc:
        raise client_error(exc, where) from exc


def client_error(exc: httpx.HTTPError, where: Where) -> ClientError:
    """Return the `ClientError` that explains an error of the SDK or of httpx."""
    if not isinstance(exc, httpx.HTTPStatusError):
        text = str(exc) or type(exc).__name__
        return UnreachableError(f"No answer: {text}", where, "Is the server running and the address right?")
    code = exc.response.status_code
    kind = {404: NotFoundError, 409: BusyError}.get(code, RefusedError)
    next_step = _NEXT_STEP.get(code, "See the server's log.")
    # Some SDK calls raise httpx's own error, whose text is a link to a page about status codes.
    text = exc.message if isinstance(exc, APIError) else _said(exc.response)
    return kind(f"{text} [{code}]", where, next_step, code)


def _said(response: httpx.Response) -> str:
    """Return the reason that a response gives, as `{"detail": …}` or as plain text."""
    try:
        body = response.text.strip()
        detail = json.loads(body).get("detail") if body.startswith("{") else body
    except (httpx.ResponseNotRead, ValueError):
        detail = ""
    short = isinstance(detail, str) and 0 < len(detail) <= _LONGEST_REASON and not detail.startswith("<")
    return str(detail) if short else response.reason_phrase


def is_passing(exc: httpx.HTTPError) -> bool:
    """Whether an error may go away by itself: a broken connection, an overloaded or restarting server."""
    if isinstance(exc, httpx.HTTPStatusError):
        return exc.response.status_code == 429 or exc.response.status_code >= 500
    return isinstance(exc, httpx.TransportError)
