"""The connection to a LangGraph server, and its threads."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import httpx  # what langgraph-sdk is built on
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import ThreadSelectField, ThreadStatus

from agent.client.driver import Driver
from agent.client.errors import NotFoundError, ProtocolError, RefusedError, Where, explained
from agent.client.events import Interrupt
from agent.client.fields import Fields, fields, identifier, instant, json_size, listed, text, word
from agent.client.open_questions import OpenQuestions, open_questions
from agent.client.standing import ThreadStanding, standing
from agent.client.transport import BoundedTransport, Limits

# `get_client` retries five times, so that a server which does not run is reported after 7.5 s; two retries
# take half a second.
_CONNECT_RETRIES = 2
# No stream is silent for longer: servers send a sign of life every 5 s. One that is, is joined again.
_TIMEOUT = httpx.Timeout(connect=5, read=60, write=60, pool=5)

# A malformed answer makes a thread's status `error`, and leaves its question open.
_MAY_WAIT: tuple[ThreadStatus, ...] = ("interrupted", "error", "idle")
_LISTED: list[ThreadSelectField] = ["thread_id", "status", "updated_at", "metadata", "interrupts"]
_PAGE = 100
_MOST_PAGES = 1000  # of threads; a server that lists them without end is none
_MOST_ASSISTANTS = 1000
_MOST_LISTED = 8_000_000  # characters of the questions of all threads in a list


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """One thread in a list; `updated_at` is the server's ISO 8601 text.

    `problem` says why its state could not be read, such as for a message that no graph takes: then whether
    it waits is unknown. `unseen`: it waits, and what for its server has lost; see `Driver.ask_again`.
    """

    thread_id: str
    graph: str
    status: str
    updated_at: str
    pending: tuple[Interrupt, ...] = ()
    problem: str = ""
    unseen: bool = False

    @property
    def waits(self) -> bool:
        """Whether the thread waits for an answer."""
        return self.unseen or bool(self.pending)


class Server:
    """A LangGraph server at an address; an async context manager that closes its connections.

    Works with `langgraph dev`, LangGraph Platform and compatible servers. Reads no environment variable.

    Args:
        url: the server's address.
        api_key: sent as `x-api-key`; default none.
        headers: sent with every request.
        reconnect_s: how long drivers go on trying to join a broken stream, in seconds.
        limits: how much the server may send, and how slowly.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        reconnect_s: float = 60.0,
        limits: Limits | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._client = LangGraphClient(
            httpx.AsyncClient(
                base_url=self.url,
                transport=BoundedTransport(httpx.AsyncHTTPTransport(retries=_CONNECT_RETRIES), limits),
                timeout=_TIMEOUT,
                headers={**(headers or {}), **({"x-api-key": api_key} if api_key else {})},
            )
        )
        self._reconnect_s = reconnect_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; drivers made here stop working."""
        await self._client.aclose()

    async def info(self) -> Mapping[str, Any]:
        """Return what the server says of itself: `version` and `flags`.

        Raises:
            UnreachableError: no answer.
        """
        with explained(Where(self.url)):
            return fields(await self._client.http.get("/info"), "what it says of itself")

    async def graphs(self) -> Sequence[str]:
        """Return the names of the graphs the server offers, sorted."""
        with explained(Where(self.url)):
            found = await self._client.assistants.search(limit=_MOST_ASSISTANTS)
            assistants = listed(found, "the list of assistants", most=_MOST_ASSISTANTS)
        return sorted({text(assistant.get("graph_id")) for assistant in assistants} - {""})

    async def new_thread(
        self,
        graph: str,
        *,
        context: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Driver:
        """Create a thread and return its driver.

        Args:
            graph: name of a graph, or an assistant's id.
            context: sent with every run and every answer.
            metadata: kept with the thread; `threads` can find it by that.

        Raises:
            ClientError: nothing was created, or the answer was lost on the way.
        """
        with explained(Where(self.url)):
            made = await self._client.threads.create(metadata=dict(metadata or {}), graph_id=graph)
            thread_id = identifier(fields(made, "the new thread").get("thread_id"), "the new thread's id")
        return self.thread(graph, thread_id, context=context)

    def thread(self, graph: str, thread_id: str, *, context: Mapping[str, Any] | None = None) -> Driver:
        """Return a driver for an existing thread; asks the server nothing."""
        return Driver(
            self._client,
            server=self.url,
            graph=graph,
            thread_id=thread_id,
            context=context,
            reconnect_s=self._reconnect_s,
        )

    async def graph_of(self, thread_id: str) -> str:
        """Return the name of the graph a thread last ran; empty when it has never run.

        Raises:
            NotFoundError: no such thread.
        """
        with explained(Where(self.url, thread_id)):
            return _graph(fields(await self._client.threads.get(thread_id), "the thread"))

    async def deployment(self) -> str | None:
        """Return the name of the deployment this server is; None where it does not say."""
        try:
            with explained(Where(self.url)):
                said = fields(await self._client.http.get("/deployment"), "what it says of its deployment")
                return word(said.get("deployment"), "the deployment's name")
        except NotFoundError:
            return None

    async def standing(self, thread_id: str) -> ThreadStanding:
        """Say whether anything works on a thread, or waits for a human."""
        return await standing(self._client, self.url, thread_id)

    async def threads(self, *, limit: int = 20, waiting: bool = False) -> Sequence[ThreadSummary]:
        """Return the newest threads and what each waits for.

        Open questions are read from each thread's state: a malformed answer removes them from the thread's
        summary though they can still be answered.

        Args:
            limit: how many at most.
            waiting: only those that wait for an answer, however many newer ones do not; beside them as many
                whose state cannot be read.

        Raises:
            ClientError: the server did not list them; one that it cannot read has a `problem` instead.
        """
        if not waiting:
            return [summary async for summary in self._newest(None, limit)]
        found = [summary for status in _MAY_WAIT for summary in await self._waiting(status, limit)]
        waits = _newest_first(thread for thread in found if not thread.problem)[:limit]
        unreadable = _newest_first(thread for thread in found if thread.problem)[:limit]
        return _newest_first([*waits, *unreadable])

    async def _waiting(self, status: ThreadStatus, limit: int) -> list[ThreadSummary]:
        found: list[ThreadSummary] = []
        async with aclosing(self._newest(status)) as threads:
            async for thread in threads:
                if thread.waits or thread.problem:
                    found.append(thread)
                if sum(1 for each in found if each.waits) == limit:
                    break
        return found

    async def _newest(
        self, status: ThreadStatus | None, limit: int | None = None
    ) -> AsyncGenerator[ThreadSummary, None]:
        done, room = 0, _MOST_LISTED
        for _ in range(_MOST_PAGES):
            size = _PAGE if limit is None else min(_PAGE, limit - done)
            with explained(Where(self.url)):
                found = await self._client.threads.search(
                    status=status,
                    limit=size,
                    offset=done,
                    sort_by="updated_at",
                    sort_order="desc",
                    select=_LISTED,
                )
                page = listed(found, "the list of threads", most=size)
            for thread in page:
                summary = await self._summary(thread)
                taken = json_size([question.value for question in summary.pending], room)
                if taken > room:
                    summary = replace(summary, pending=(), problem="What it asks is too long for a list")
                else:
                    room -= taken
                yield summary
            done += len(page)
            if len(page) < size or done == limit:
                return
        raise ProtocolError(f"It lists more than {done:,} threads", Where(self.url), "Give a smaller limit.")

    async def _summary(self, thread: Fields) -> ThreadSummary:
        with explained(Where(self.url)):
            thread_id = identifier(thread.get("thread_id"), "a thread's id")
        questions = OpenQuestions()
        problem = ""
        # An answer that was cancelled before it was taken leaves its thread idle, with the question.
        idle = thread.get("status") == "idle" and not thread.get("interrupts")
        if thread.get("status") in _MAY_WAIT and not idle:
            try:
                with explained(Where(self.url, thread_id)):
                    questions = await open_questions(self._client, thread_id, thread=thread)
            except (RefusedError, ProtocolError) as exc:  # one thread's trouble is not the list's
                problem = exc.problem
        return ThreadSummary(
            thread_id,
            _graph(thread),
            text(thread.get("status")),
            instant(thread.get("updated_at")),
            questions.all,
            problem,
            questions.unseen,
        )


def _graph(thread: Fields) -> str:
    metadata = thread.get("metadata")
    return text(metadata.get("graph_id")) if isinstance(metadata, Mapping) else ""


def _newest_first(threads: Iterable[ThreadSummary]) -> list[ThreadSummary]:
    return sorted(threads, key=lambda thread: thread.updated_at, reverse=True)
