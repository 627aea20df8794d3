"""What can go wrong between a client and a LangGraph server.

    ClientError
    ├── UnreachableError     no answer from the server
    ├── RefusedError         the server answered, and refused (status code kept)
    │   ├── NotFoundError    404: no such thread, run or assistant
    │   └── BusyError        409: another run works on this thread
    ├── ProtocolError        what the server said is nothing that a LangGraph server says
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

from agent.client.fields import FieldError


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


class ProtocolError(ClientError):
    """What the server said cannot be used: another kind of server, a broken or a hostile one.

    Too large, too deep or too slow an answer, a redirect, a page in place of JSON, fields of a wrong kind.
    What became of the request is unknown.
    """


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


UNEXPLAINED = (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError)
"""What the SDK, httpx and the reading of an answer raise, where a server did not answer as it should."""

_LONGEST_REASON = 500
_LONGEST_BODY = 100_000
_WHOSE = "Is the address that of a LangGraph server?"
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
        ProtocolError: what it said cannot be used.
    """
    try:
        yield
    except UNEXPLAINED as exc:
        raise client_error(exc, where) from exc


def client_error(exc: Exception, where: Where) -> ClientError:
    """Return the `ClientError` that explains one of `UNEXPLAINED`."""
    if isinstance(exc, FieldError | httpx.DecodingError):
        return ProtocolError(f"The server's answer cannot be used: {_short(str(exc))}", where, _WHOSE)
    if not isinstance(exc, httpx.HTTPError):  # of the SDK's parser, or a depth that nothing here walks down
        return ProtocolError("The server's answer is no JSON that can be read", where, _WHOSE)
    if not isinstance(exc, httpx.HTTPStatusError):
        text = _short(str(exc)) or type(exc).__name__
        return UnreachableError(f"No answer: {text}", where, "Is the server running and the address right?")
    code = exc.response.status_code
    kind = {404: NotFoundError, 409: BusyError}.get(code, RefusedError)
    next_step = _NEXT_STEP.get(code, "See the server's log.")
    # Some SDK calls raise httpx's own error, whose text is a link to a page about status codes.
    text = _short(exc.message if isinstance(exc, APIError) else _said(exc.response))
    return kind(f"{text} [{code}]", where, next_step, code)


def _said(response: httpx.Response) -> str:
    """Return the reason that a response gives, as `{"detail": …}` or as plain text."""
    try:
        body = response.text.strip()
        detail = json.loads(body[:_LONGEST_BODY]).get("detail") if body.startswith("{") else body
    except (httpx.ResponseNotRead, ValueError, RecursionError):
        detail = ""
    short = isinstance(detail, str) and 0 < len(detail) <= _LONGEST_REASON and not detail.startswith("<")
    return str(detail) if short else response.reason_phrase


def _short(text: str) -> str:
    """Return a reason as one line; a server may send a whole page."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}…"


def is_passing(exc: Exception) -> bool:
    """Whether an error may go away by itself: a broken connection, an overloaded or restarting server."""
    if isinstance(exc, httpx.HTTPStatusError):
        return exc.response.status_code == 429 or exc.response.status_code >= 500
    return isinstance(exc, httpx.TransportError)
