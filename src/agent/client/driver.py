"""Drive one thread of one graph: start a run, follow it, answer its questions, cancel it."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import RunCreateMetadata, StreamMode

from agent.client.account import ThreadAccount, account, failed_run
from agent.client.answers import ELSEWHERE, lost_among, refuse_others
from agent.client.decode import decode
from agent.client.errors import BusyError, NotFoundError, Where, explained
from agent.client.events import (
    Event,
    Failed,
    Finished,
    Interrupt,
    Interrupted,
    Outcome,
    Reconnecting,
    Started,
    State,
)
from agent.client.fields import Fields, fields, identifier, listed, text
from agent.client.files import ThreadFiles
from agent.client.open_questions import open_questions
from agent.client.stream import RunStream, Stream

STREAM_MODES: list[StreamMode] = ["messages-tuple", "custom", "updates"]
_GOING_ON = frozenset({"pending", "running"})
_NEWEST = 10


class Driver:
    """One thread of one graph on one server.

    Holds no state that the server does not: a new driver for the same thread goes on where this one stopped.
    Streams are resumable, so a connection that breaks is joined again after the last event that was
    received: nothing is lost and nothing is repeated.

    Args:
        client: the connection; not closed here.
        server: the server's address, for messages.
        graph: name of a graph, or an assistant's id.
        thread_id: an existing thread.
        context: sent with every run and every answer: a server does not keep it between the two.
        reconnect_s: how long to go on trying to join a broken stream, in seconds.
    """

    def __init__(
        self,
        client: LangGraphClient,
        *,
        server: str,
        graph: str,
        thread_id: str,
        context: Mapping[str, Any] | None = None,
        reconnect_s: float = 60.0,
    ) -> None:
        self._client = client
        self._stream = RunStream(client, server=server, thread_id=thread_id, reconnect_s=reconnect_s)
        self.graph = graph
        self.thread_id = thread_id
        self.context = dict(context or {})
        self.unsent = False
        """Whether answers were given that were not sent yet, as while what they answer is asked again."""

    @property
    def run_id(self) -> str | None:
        """The run this driver followed last."""
        return self._stream.run_id

    @property
    def last_event_id(self) -> str | None:
        """The last event received of that run; `join` goes on after it."""
        return self._stream.last_event_id

    @property
    def where(self) -> Where:
        """Server, thread and run, for messages."""
        return self._stream.where

    @property
    def files(self) -> ThreadFiles:
        """Charts and files that runs made, and files for the next run."""
        return ThreadFiles(self._client, self.where)

    def start(
        self, input: Mapping[str, Any], *, deadline_s: float | None = None
    ) -> AsyncGenerator[Event, None]:
        """Start a run and follow it to its end or to a question.

        A run in progress on the thread is left alone: `BusyError`.

        Args:
            input: the graph's input.
            deadline_s: how long to follow at most, in seconds; default no limit.

        Yields:
            Events, the last one an `Interrupted`, `Finished` or `Failed`.

        Raises:
            BusyError: another run works on the thread; nothing was started.
            RefusedError: the server refused; nothing was started.
            ProtocolError: what the server said cannot be used; whether the run was started is unknown.
            UnreachableError: no answer; whether the run was started is unknown.
            StreamLostError: the stream broke and could not be joined again; the run may go on.
            DeadlineError: `deadline_s` passed; the run goes on.
        """
        return self._run({"input": dict(input)}, deadline_s)

    def answer(
        self, answers: Mapping[str, Any], *, deadline_s: float | None = None
    ) -> AsyncGenerator[Event, None]:
        """Answer open questions by id and follow the run that goes on.

        Answers to questions that are not open are refused here: the server would drop them without a word. A
        question that the server has lost (see `open_questions`) is asked again first, and answered when it
        comes with the same words.

        Args:
            answers: question id → answer, as JSON.
            deadline_s: how long to follow at most, in seconds; default no limit.

        Yields:
            As `start`.

        Raises:
            StaleAnswerError: an id is not among the open questions; nothing was sent.
            BusyError: a run works on the thread: it was answered elsewhere; nothing was started.
            ClientError: as `start`.
        """
        self.unsent = True
        return self._answer(answers, deadline_s)

    async def join(
        self,
        run_id: str | None = None,
        *,
        last_event_id: str | None = None,
        deadline_s: float | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Follow a run that another client, process or an earlier call started.

        Args:
            run_id: the run; default the one this driver followed last, else the thread's newest.
            last_event_id: the last event already known; default the last this driver received of that run,
                else everything from the start.
            deadline_s: how long to follow at most, in seconds; default no limit.

        Yields:
            As `start`. A run that has ended gives what the server still keeps of it, and its outcome.

        Raises:
            NotFoundError: no such run, or the thread has none.
            ClientError: as `start`.
        """
        at, run_id = self._stream, run_id or self.run_id or await self._newest_run()
        if run_id != at.run_id:
            at.run_id, at.last_event_id = run_id, None
        at.last_event_id = last_event_id or at.last_event_id
        async for event in self._follow(at.joined, deadline_s):
            yield event

    def ask_again(self, *, deadline_s: float | None = None) -> AsyncGenerator[Event, None]:
        """Run the steps again that the thread stands at, so that they ask what the server has lost.

        Args:
            deadline_s: how long to follow at most, in seconds; default no limit.

        Yields:
            As `start`.

        Raises:
            ClientError: as `start`.
        """
        return self._run({"input": None}, deadline_s)

    async def pending(self) -> tuple[Interrupt, ...]:
        """Return the open questions, oldest first; empty when the thread waits for nothing."""
        with explained(self.where):
            return (await open_questions(self._client, self.thread_id)).all

    async def values(self) -> State:
        """Return the thread's state."""
        with explained(self.where):
            state = await self._client.threads.get_state(self.thread_id)
            values = fields(state, "the thread's state").get("values")
        return values if isinstance(values, Mapping) else {}

    async def account(self) -> ThreadAccount:
        """Return all that the server still knows of the thread, also how its newest run failed."""
        return await account(self._client, self.where)

    async def running(self) -> str | None:
        """Return the id of the run that works on the thread or is next to, or None."""
        with explained(self.where):
            found = await self._client.runs.list(self.thread_id, limit=_NEWEST)
            runs = listed(found, "the list of runs", most=_NEWEST)
            going_on = (run.get("run_id") for run in runs if text(run.get("status")) in _GOING_ON)
            return next((identifier(run_id, "a run's id") for run_id in going_on), None)

    async def cancel(self, run_id: str | None = None) -> bool:
        """Stop a run and wait until it has stopped; what it wrote to the state stays.

        Args:
            run_id: the run; default the one this driver followed last.

        Returns:
            False when there was nothing to cancel: the run had ended already.
        """
        run_id = run_id or self.run_id
        if run_id is None:
            return False
        try:
            with explained(self.where):
                await self._client.runs.cancel(self.thread_id, run_id, wait=True)
        except (NotFoundError, BusyError):  # an ended run
            return False
        return True

    async def _newest_run(self) -> str:
        with explained(self.where):
            found = await self._client.runs.list(self.thread_id, limit=1)
            runs = listed(found, "the list of runs", most=1)
            newest = identifier(runs[0].get("run_id"), "a run's id") if runs else None
        if newest is None:
            raise NotFoundError("The thread has no run", self.where, "Start one.", 404)
        return newest

    async def _answer(
        self, answers: Mapping[str, Any], deadline_s: float | None
    ) -> AsyncGenerator[Event, None]:
        try:
            if lost := await lost_among(self._client, self.where, answers):
                async for _ in self.ask_again(deadline_s=deadline_s):
                    pass
                await refuse_others(self._client, self.where, lost)
            self.unsent = False
            async for event in self._run({"command": {"resume": dict(answers)}}, deadline_s):
                yield event
        except BusyError as exc:
            raise BusyError(ELSEWHERE, self.where, "A run works on it.", exc.status_code) from exc

    def _run(self, request: dict[str, Any], deadline_s: float | None) -> AsyncGenerator[Event, None]:
        at = self._stream
        at.run_id = at.last_event_id = None

        def created(run: RunCreateMetadata) -> None:
            at.run_id = identifier(run["run_id"], "the run's id")

        def opened() -> Stream:
            return self._client.runs.stream(
                self.thread_id,
                self.graph,
                context=self.context or None,
                stream_mode=STREAM_MODES,
                stream_subgraphs=True,
                stream_resumable=True,
                multitask_strategy="reject",
                on_disconnect="continue",
                on_run_created=created,
                **request,
            )

        return self._follow(opened, deadline_s)

    async def _follow(
        self, opened: Callable[[], Stream], deadline_s: float | None
    ) -> AsyncGenerator[Event, None]:
        failure: Any = None
        async for part in self._stream.parts(opened, deadline_s):
            if isinstance(part, Reconnecting):
                yield part
                continue
            if part.event == "error":
                failure = part.data
            with explained(self.where):
                events = list(decode(part, self.thread_id))
            for event in events:
                if isinstance(event, Started):
                    self._stream.run_id = event.run_id or self.run_id
                yield event
        yield await self._outcome(failure, self._stream.status)

    async def _outcome(self, failure: Any, status: str) -> Outcome:
        """Say how the run ended: by its status and by what the thread's state waits for."""
        if status == "removed":
            return Failed("The run was removed from the server.", status=status)
        state = await self._stream.asked(self._state)
        questions = await self._stream.asked(
            lambda: open_questions(self._client, self.thread_id, state=state)
        )
        waiting = questions.all
        if failure is not None or status in {"error", "timeout"}:
            return await self._failed(failure, status, waiting)
        if waiting or questions.unseen:
            return Interrupted(waiting)
        if status == "interrupted":
            return Failed("The run was cancelled.", status="cancelled")
        values = state.get("values")
        return Finished(values if isinstance(values, Mapping) else {})

    async def _state(self) -> Fields:
        return fields(await self._client.threads.get_state(self.thread_id), "the thread's state")

    async def _record(self) -> Fields:
        return fields(await self._client.threads.get(self.thread_id), "the thread")

    async def _failed(self, failure: Any, status: str, waiting: tuple[Interrupt, ...]) -> Failed:
        if failure is None:  # the stream was joined too late to see the error
            failure = (await self._stream.asked(self._record)).get("error")
        return failed_run(failure, status, waiting)
