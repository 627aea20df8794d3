"""The raw stream of one run, joined again after the last part received whenever the connection breaks."""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import httpx  # langgraph-sdk lets httpx's own errors through when a connection fails
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import StreamPart

from agent.client.errors import (
    UNEXPLAINED,
    DeadlineError,
    NotFoundError,
    StreamLostError,
    UnreachableError,
    Where,
    client_error,
    is_passing,
)
from agent.client.events import Reconnecting
from agent.client.fields import FieldError, fields, text

FROM_THE_START = "-1"  # as Last-Event-ID: replay everything the server kept
_EVENT_ID = re.compile(r"[\x21-\x7e]{1,200}")  # it is sent back in a header
_ORDERED = re.compile(r"([0-9]{1,20})(?:-([0-9]{1,20})?)?")
_GOING_ON = frozenset({"pending", "running"})
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.25, 4.0
_MOST_JOINS = 20_000
"""In a row without anything new: most of a day, at the longest delay."""
_LASTS_S = 1.0
"""From here on a stream that brought something new and closed is joined again at once."""

Stream = AsyncIterator[StreamPart]
T = TypeVar("T")


class RunStream:
    """Where a client stands in one run's stream.

    A stream that closes is not taken for the run's end: servers and proxies close streams for reasons of
    their own. The run's status decides.

    Args:
        client: the connection; its SDK must not join broken streams by itself, see `Server`.
        server: the server's address, for messages.
        thread_id: the run's thread.
        reconnect_s: how long to go on trying when there is no answer, in seconds.
    """

    def __init__(self, client: LangGraphClient, *, server: str, thread_id: str, reconnect_s: float) -> None:
        self._client = client
        self._server = server
        self._thread_id = thread_id
        self._reconnect_s = reconnect_s
        self.run_id: str | None = None
        self.last_event_id: str | None = None
        self.status = ""

    @property
    def where(self) -> Where:
        """Server, thread and run, for messages."""
        return Where(self._server, self._thread_id, self.run_id)

    def joined(self) -> Stream:
        """Open the stream of the run after the last event received."""
        assert self.run_id is not None
        # Naming stream modes here would filter the kept events.
        return self._client.runs.join_stream(
            self._thread_id, self.run_id, last_event_id=self.last_event_id or FROM_THE_START
        )

    async def parts(
        self, opened: Callable[[], Stream], deadline_s: float | None
    ) -> AsyncIterator[StreamPart | Reconnecting]:
        """Yield the parts of the run's stream until the run has ended; `status` then says how.

        Args:
            opened: opens the stream for the first time; sets `run_id` when the server names the run.
            deadline_s: how long to follow at most, in seconds; None is no limit.

        Raises:
            ClientError: see `Driver.start`.
        """
        loop = asyncio.get_running_loop()
        deadline = None if deadline_s is None else loop.time() + deadline_s
        source = opened()
        attempt, give_up, joined = 0, loop.time() + self._reconnect_s, loop.time()
        # Joins in a row that brought nothing new: a server that says "running" for ever ends it too.
        while attempt <= _MOST_JOINS:
            try:
                # The limit is on each wait: around a `yield` it would cancel the caller's code.
                async with asyncio.timeout_at(deadline):
                    part = await anext(source, None)
                    if part is None and not await self._goes_on():
                        return
                    before = self.last_event_id
                    is_new = part is not None and self._is_new(part.id)
                reason = "the stream closed before the run's end"
            except TimeoutError as exc:
                raise self._deadline(deadline_s) from exc
            except UNEXPLAINED as exc:
                if self.run_id is None or not is_passing(exc):
                    raise client_error(exc, self.where) from exc
                part, reason = None, str(exc) or type(exc).__name__
                if loop.time() > give_up:
                    raise self._lost(reason) from exc
            if part is None:
                if attempt:  # a first join is at once, and nobody needs to hear of it
                    yield Reconnecting(reason, attempt)
                    await _pause(attempt, give_up)
                attempt += 1
                source, joined = self.joined(), loop.time()
                continue
            give_up = loop.time() + self._reconnect_s
            # What is only played again is no progress, and neither is a stream that closes at each event.
            if self.last_event_id != before:
                attempt = 0 if loop.time() - joined > _LASTS_S else min(attempt, 1)
            if is_new:
                yield part
        raise self._lost(f"joined {_MOST_JOINS:,} times, it brought nothing new")

    async def asked(self, request: Callable[[], Awaitable[T]]) -> T:
        """Return the answer to a request that changes nothing, asking again while there is none.

        Raises:
            UnreachableError: no answer in time.
            RefusedError: the server refused.
            ProtocolError: what it said cannot be used.
        """
        loop = asyncio.get_running_loop()
        attempt, give_up = 0, loop.time() + self._reconnect_s
        while True:
            try:
                return await request()
            except UNEXPLAINED as exc:
                if not is_passing(exc) or loop.time() > give_up:
                    raise client_error(exc, self.where) from exc
            attempt += 1
            await _pause(attempt, give_up)

    async def _goes_on(self) -> bool:
        """Ask whether the run still works; a closed stream is at times a moment ahead of its status."""
        if self.run_id is None:
            problem = "The server closed the stream without naming a run"
            raise UnreachableError(problem, self.where, "Is the address that of a LangGraph server?")
        try:
            run = fields(await self._client.runs.get(self._thread_id, self.run_id), "the run")
        except httpx.HTTPStatusError as exc:
            if isinstance(client_error(exc, self.where), NotFoundError):
                self.status = "removed"
                return False
            raise
        self.status = text(run.get("status"))
        return self.status in _GOING_ON

    def _is_new(self, event_id: str | None) -> bool:
        # Parts without an id of their own carry the one before: only an older id is a repetition.
        if event_id is None:
            return True
        if not _EVENT_ID.fullmatch(event_id):
            raise FieldError("an event's id is none")
        if self.last_event_id and _order(event_id) < _order(self.last_event_id):
            return False
        self.last_event_id = event_id
        return True

    def _deadline(self, deadline_s: float | None) -> DeadlineError:
        return DeadlineError(
            f"Not finished within {deadline_s:g} s",
            self.where,
            "The run goes on: join it again, or cancel it.",
        )

    @property
    def _after(self) -> str:
        return f"after event {self.last_event_id}" if self.last_event_id else "from its start"

    def _lost(self, reason: str) -> StreamLostError:
        return StreamLostError(
            f"The stream broke and could not be joined again within {self._reconnect_s:g} s: {reason}",
            self.where,
            f"The run may go on: join it {self._after}.",
        )


async def _pause(attempt: int, give_up: float) -> None:
    """Wait longer at each attempt, by chance less, and never past the end."""
    delay = min(_FIRST_DELAY_S * 2 ** min(attempt - 1, 10), _LONGEST_DELAY_S) * random.uniform(0.5, 1)
    left = give_up - asyncio.get_running_loop().time()
    # Past the end only a server that answers is asked on: not at once, again and again.
    await asyncio.sleep(min(delay, left) if left > 0 else delay)


def _order(event_id: str) -> tuple[int, int]:
    """Sort key of an event id, `<milliseconds>-<sequence>`; ids of another form sort alike."""
    found = _ORDERED.fullmatch(event_id)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)
