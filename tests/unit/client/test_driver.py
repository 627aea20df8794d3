"""The driver against a scripted server: what it asks for, and what it makes of the answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from agent.client import (
    BusyError,
    ClientError,
    DeadlineError,
    Driver,
    Event,
    Failed,
    Finished,
    Interrupt,
    Interrupted,
    NotFoundError,
    Progress,
    Reconnecting,
    StaleAnswerError,
    StreamLostError,
    UnreachableError,
)

Handler = Callable[[httpx.Request], httpx.Response]


class FakeServer:
    """Mirrors the five routes the driver uses: stream, join, run, state and thread.

    `streams` holds one entry a connection: the parts it sends, and whether it then breaks.
    """

    def __init__(self, *streams: tuple[list[tuple[str, str, Any]], bool]) -> None:
        self.streams = list(streams)
        self.requests: list[httpx.Request] = []
        self.run_status = "success"
        self.statuses: list[str | None] = []  # come before run_status; None: no such run
        self.refusals = 0
        self.state: dict[str, Any] = {"values": {"done": True}, "interrupts": []}
        self.thread: dict[str, Any] = {"thread_id": "t"}

    def handle(self, request: httpx.Request) -> httpx.Response:
        """Answer one request and remember it."""
        self.requests.append(request)
        path = request.url.path
        if not path.endswith("/stream") and self.refusals:
            self.refusals -= 1
            raise httpx.ConnectError("refused")
        if path.endswith("/stream"):
            return self._stream()
        if path.endswith("/state"):
            return httpx.Response(200, json=self.state)
        if path == "/threads/t/runs":
            return httpx.Response(200, json=[{"run_id": "r2", "status": self.run_status}])
        if path == "/threads/t":
            return httpx.Response(200, json=self.thread)
        if path == "/threads/t/runs/r1":
            status = self.statuses.pop(0) if self.statuses else self.run_status
            return httpx.Response(200 if status else 404, json={"run_id": "r1", "status": status})
        return httpx.Response(404, json={"detail": "not here"})

    def _stream(self) -> httpx.Response:
        if not self.streams:
            raise httpx.ConnectError("refused")
        parts, breaks = self.streams.pop(0)
        headers = {"Content-Type": "text/event-stream", "Content-Location": "/threads/t/runs/r1"}
        return httpx.Response(200, headers=headers, stream=_Body(parts, breaks))

    def bodies(self) -> list[dict[str, Any]]:
        """Return the JSON bodies of the runs that were started."""
        return [json.loads(request.content) for request in self.requests if request.method == "POST"]


class _Body(httpx.AsyncByteStream):
    def __init__(self, parts: list[tuple[str, str, Any]], breaks: bool) -> None:
        self._parts = parts
        self._breaks = breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event_id, event, data in self._parts:
            yield f"id: {event_id}\nevent: {event}\ndata: {json.dumps(data)}\n\n".encode()
        if self._breaks:
            raise httpx.ReadError("cut")


def driver(handler: Handler, *, reconnect_s: float = 5.0) -> Driver:
    """Return a driver whose requests `handler` answers."""
    client = LangGraphClient(
        httpx.AsyncClient(transport=httpx.MockTransport(handler), base_url="http://fake")
    )
    return Driver(
        client,
        server="http://fake",
        graph="g",
        thread_id="t",
        context={"model": "m"},
        reconnect_s=reconnect_s,
    )


def progress(number: int) -> tuple[str, str, Any]:
    """Return the stream part of one progress event."""
    return f"{number}-0", "custom", {"type": "progress", "phase": "p", "message": str(number)}


def messages(events: list[Event]) -> list[str]:
    """Return what the progress events say."""
    return [event.message for event in events if isinstance(event, Progress)]


STARTED = ("1-0", "metadata", {"run_id": "r1", "attempt": 1})


async def test_start_sends_input_and_context_and_ends_with_the_state() -> None:
    """A run is resumable, refuses a busy thread, and its last event is the thread's state."""
    server = FakeServer(([STARTED, progress(2)], False))
    events = [event async for event in driver(server.handle).start({"a": 1})]
    assert events[-1] == Finished({"done": True})
    (body,) = server.bodies()
    assert body["input"] == {"a": 1}
    assert body["context"] == {"model": "m"}
    assert body["stream_resumable"] is True
    assert body["multitask_strategy"] == "reject"


async def test_a_broken_stream_is_joined_after_the_last_event() -> None:
    """What was received is not asked for again, and an event that comes again is dropped."""
    server = FakeServer(([STARTED, progress(2), progress(3)], True), ([progress(2), progress(4)], False))
    watched = driver(server.handle)
    events = [event async for event in watched.start({})]
    assert messages(events) == ["2", "3", "4"]
    joined = [request for request in server.requests if request.url.path == "/threads/t/runs/r1/stream"]
    assert joined[0].headers["last-event-id"] == "3-0"
    assert watched.last_event_id == "4-0"


async def test_a_stream_that_closes_before_the_runs_end_is_joined() -> None:
    """A proxy's limit or a restart closes streams too: the run's status decides, not the stream."""
    server = FakeServer(([STARTED, progress(2)], False), ([progress(3)], False))
    server.statuses = ["running", "success"]
    events = [event async for event in driver(server.handle).start({})]
    assert messages(events) == ["2", "3"]
    assert isinstance(events[-1], Finished)


async def test_a_stream_that_closes_again_and_again_is_joined_with_pauses_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server says that the run goes on, plays the same again and closes: each join waits longer."""
    pauses: list[float] = []

    async def sleep(delay_s: float) -> None:
        pauses.append(delay_s)

    monkeypatch.setattr("agent.client.stream.asyncio.sleep", sleep)
    monkeypatch.setattr("agent.client.stream._MOST_JOINS", 30)
    server = FakeServer(*[([STARTED, progress(2)], False)] * 100)
    server.run_status = "running"
    watched = driver(server.handle)
    with pytest.raises(StreamLostError, match="joined 30 times, it brought nothing new"):
        [event async for event in watched.start({})]
    assert len(pauses) == 30
    assert all(pause >= 0.1 for pause in pauses)
    assert all(2 <= pause <= 4 for pause in pauses[6:])


async def test_a_lost_connection_is_told_when_the_first_try_fails() -> None:
    """A caller can say why nothing comes; a break that is mended at once is not worth a word."""
    server = FakeServer(([STARTED, progress(2)], True), ([], True), ([progress(3)], False))
    events = [event async for event in driver(server.handle).start({})]
    assert messages(events) == ["2", "3"]
    assert [event for event in events if isinstance(event, Reconnecting)] == [Reconnecting("cut", 1)]


async def test_a_connection_that_breaks_at_the_end_is_no_failure_of_the_run() -> None:
    """How the run ended is asked for again."""
    server = FakeServer(([STARTED, progress(2)], False), ([], False))
    server.refusals = 1
    events = [event async for event in driver(server.handle).start({})]
    assert messages(events) == ["2"]
    assert events[-1] == Finished({"done": True})


async def test_a_run_that_was_deleted_says_so() -> None:
    """A server that lost its state knows the run no more; waiting for it would be in vain."""
    server = FakeServer(([STARTED], False))
    server.statuses = [None]
    events = [event async for event in driver(server.handle).start({})]
    assert events[-1] == Failed("The run was removed from the server.", status="removed")


async def test_a_stream_that_cannot_be_joined_is_lost_with_directions() -> None:
    """The error names server, thread, run and the event to go on from."""
    server = FakeServer(([STARTED, progress(2)], True))
    with pytest.raises(StreamLostError, match=r"server http://fake, thread t, run r1.*after event 2-0"):
        [event async for event in driver(server.handle, reconnect_s=0.1).start({})]


async def test_no_answer_to_the_first_request_is_unreachable() -> None:
    """Nothing is retried before the server has named a run: that could start it twice."""
    server = FakeServer()
    with pytest.raises(UnreachableError, match="refused"):
        [event async for event in driver(server.handle).start({})]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("code", "kind"), [(409, BusyError), (404, NotFoundError), (500, ClientError), (401, ClientError)]
)
async def test_a_refusal_keeps_the_servers_words(code: int, kind: type[ClientError]) -> None:
    """The error's class follows the status code, its text names where and what next."""
    with pytest.raises(kind, match=rf"the reason \[{code}\] \(server http://fake, thread t\)"):
        [
            event
            async for event in driver(lambda _: httpx.Response(code, json={"detail": "the reason"})).start({})
        ]


async def test_an_error_event_fails_with_the_servers_text() -> None:
    """What the graph raised is what the caller reads."""
    server = FakeServer(([STARTED, ("2-0", "error", {"error": "ValueError", "message": "no"})], False))
    server.run_status = "error"
    events = [event async for event in driver(server.handle).start({})]
    assert events[-1] == Failed("no", "ValueError", "error")


async def test_a_run_that_failed_silently_fails_by_its_status() -> None:
    """A stream without an error event does not make a failed run a finished one."""
    server = FakeServer(([STARTED], False))
    server.run_status = "error"
    server.thread["error"] = {"error": "KeyError", "message": "'x'"}
    events = [event async for event in driver(server.handle).start({})]
    assert events[-1] == Failed("'x'", "KeyError", "error")


async def test_a_failed_run_names_the_questions_that_are_still_open() -> None:
    """After a malformed answer the question can be answered again."""
    server = FakeServer(([STARTED, ("2-0", "error", {"error": "E", "message": "bad answer"})], False))
    server.run_status = "error"
    server.state["interrupts"] = [{"id": "i", "value": 1}]
    events = [event async for event in driver(server.handle).start({})]
    assert events[-1] == Failed("bad answer", "E", "error", (Interrupt("i", 1),))


async def test_a_cancelled_run_says_so() -> None:
    """A cancel is neither an answer nor a failure of the graph."""
    server = FakeServer(([STARTED], False))
    server.run_status = "interrupted"
    events = [event async for event in driver(server.handle).start({})]
    assert events[-1] == Failed("The run was cancelled.", status="cancelled")


async def test_answer_maps_ids_and_sends_the_context_again() -> None:
    """A server keeps no context between a question and its answer."""
    server = FakeServer(([STARTED], False))
    server.state["interrupts"] = [{"id": "i", "value": 1}]
    events = [event async for event in driver(server.handle).answer({"i": {"decisions": []}})]
    assert events[-1] == Interrupted((Interrupt("i", 1),))
    (body,) = server.bodies()
    assert body["command"] == {"resume": {"i": {"decisions": []}}}
    assert body["context"] == {"model": "m"}


@pytest.mark.parametrize("answers", [{"old": {}}, {}])
async def test_an_answer_to_no_open_question_is_not_sent(answers: dict[str, Any]) -> None:
    """The server would accept it and do nothing; nothing is started."""
    server = FakeServer()
    server.state["interrupts"] = [{"id": "i", "value": 1}]
    with pytest.raises(StaleAnswerError, match="Open now: i") as refused:
        [event async for event in driver(server.handle).answer(answers)]
    assert refused.value.open_now == ("i",)
    assert server.bodies() == []


async def test_an_answer_to_a_question_that_was_answered_elsewhere_says_so() -> None:
    """Whether the question is gone already, or the server refuses because of the other run."""
    server = FakeServer()
    server.run_status = "running"
    with pytest.raises(StaleAnswerError, match=r"answered elsewhere .* A run works on it\."):
        [event async for event in driver(server.handle).answer({"i": {}})]

    def busy(request: httpx.Request) -> httpx.Response:
        return httpx.Response(409) if request.url.path.endswith("/stream") else server.handle(request)

    server.state["interrupts"] = [{"id": "i", "value": 1}]
    with pytest.raises(BusyError, match=r"answered elsewhere .* A run works on it\."):
        [event async for event in driver(busy).answer({"i": {}})]


async def test_deadline_leaves_the_run_alone() -> None:
    """The caller gets its time back; the error says that the run goes on."""

    class Silent(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            await asyncio.Event().wait()
            yield b""

    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, stream=Silent())

    with pytest.raises(DeadlineError, match=r"Not finished within 0.05 s .*join it again, or cancel it"):
        [event async for event in driver(handler).start({}, deadline_s=0.05)]
