"""The client against a real `langgraph dev`: every ending of a run, questions and answers."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio
from langgraph_sdk import get_client

from agent.client import (
    BusyError,
    Driver,
    Event,
    Failed,
    Finished,
    Interrupted,
    NotFoundError,
    Progress,
    RefusedError,
    Server,
    StaleAnswerError,
    Started,
    Token,
    UnreachableError,
)
from support import client_graph
from support.langgraph_dev import DevServer


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A langgraph.json that serves the tests' own graph."""
    path = tmp_path_factory.mktemp("client-config") / "langgraph.json"
    graph = f"{Path(client_graph.__file__)}:graph"
    path.write_text(json.dumps({"dependencies": ["."], "graphs": {"work": graph}}))
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def dev(config: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DevServer]:
    """One development server for this module."""
    async with DevServer(config, tmp_path_factory.mktemp("client-state")) as server:
        yield server
        server.assert_no_blocking_errors()


@pytest_asyncio.fixture(loop_scope="session")
async def server(dev: DevServer) -> AsyncIterator[Server]:
    """A connection to it."""
    async with Server(dev.url) as connection:
        yield connection


async def start(server: Server, do: str) -> tuple[Driver, list[Event]]:
    """Run `do` on a new thread to its end or question."""
    driver = await server.new_thread("work")
    return driver, [event async for event in driver.start({"do": do})]


async def test_run_ends_with_its_state(server: Server) -> None:
    """A plain run starts, says its words and finishes."""
    driver, events = await start(server, "say")
    assert events[0] == Started(driver.thread_id, driver.run_id or "", 1)
    assert any(isinstance(event, Token) and event.text == "hello there" for event in events)
    assert isinstance(events[-1], Finished)
    assert events[-1].values["seen"] == ["said"]


async def test_failed_run_gives_the_graphs_own_words(server: Server) -> None:
    """The exception's text reaches the client, also one that joins afterwards."""
    driver, events = await start(server, "fail")
    assert events[-1] == Failed("the work failed", "RuntimeError", "error")
    later = server.thread("work", driver.thread_id)
    assert [event async for event in later.join()][-1] == events[-1]


async def test_question_is_answered_by_id(server: Server) -> None:
    """The run stops at the question, and goes on with the answer of that id."""
    driver, events = await start(server, "ask")
    asked = events[-1]
    assert isinstance(asked, Interrupted)
    (question,) = asked.interrupts
    assert question.value == {"question": "left"}
    after = [event async for event in driver.answer({question.id: {"decisions": "yes"}})]
    assert isinstance(after[-1], Finished)
    assert after[-1].values["seen"] == ["ask", "left:yes"]
    assert await driver.pending() == ()


async def test_two_questions_at_once_have_their_own_answers(server: Server) -> None:
    """Answering one leaves the other open under the same id."""
    driver, events = await start(server, "ask both")
    asked = events[-1]
    assert isinstance(asked, Interrupted)
    by_name = {question.value["question"]: question.id for question in asked.interrupts}
    after = [event async for event in driver.answer({by_name["left"]: {"decisions": "1"}})]
    assert isinstance(after[-1], Interrupted)
    assert [question.id for question in after[-1].interrupts] == [by_name["right"]]
    last = [event async for event in driver.answer({by_name["right"]: {"decisions": "2"}})]
    assert isinstance(last[-1], Finished)
    assert sorted(last[-1].values["seen"]) == ["ask both", "left:1", "right:2"]


async def test_malformed_answer_leaves_the_question_open(server: Server) -> None:
    """The failure names the open question, and a right answer then goes through."""
    driver, events = await start(server, "ask")
    asked = events[-1]
    assert isinstance(asked, Interrupted)
    (question,) = asked.interrupts
    failed = [event async for event in driver.answer({question.id: "yes"})][-1]
    assert isinstance(failed, Failed)
    assert "Answer" in failed.message
    assert failed.pending == (question,)
    assert isinstance(
        [event async for event in driver.answer({question.id: {"decisions": "yes"}})][-1], Finished
    )


async def test_answered_question_is_stale(server: Server) -> None:
    """An answer given twice is refused and changes nothing."""
    driver, events = await start(server, "ask")
    asked = events[-1]
    assert isinstance(asked, Interrupted)
    answers = {asked.interrupts[0].id: {"decisions": "yes"}}
    assert isinstance([event async for event in driver.answer(answers)][-1], Finished)
    before = await driver.values()
    with pytest.raises(StaleAnswerError, match="waits for nothing"):
        [event async for event in driver.answer(answers)]
    assert await driver.values() == before


async def test_answer_cancelled_before_it_was_taken_leaves_the_question_in_the_list(
    server: Server, dev: DevServer
) -> None:
    """The server calls such a thread idle; it waits all the same."""
    driver, events = await start(server, "ask")
    asked = events[-1]
    assert isinstance(asked, Interrupted)
    answer = {"resume": {asked.interrupts[0].id: {"decisions": "yes"}}}
    async with get_client(url=dev.url) as client:
        run = await client.runs.create(driver.thread_id, "work", command=answer, after_seconds=60)
        await client.runs.cancel(driver.thread_id, run["run_id"], wait=True)
        assert (await client.threads.get(driver.thread_id))["status"] == "idle"
    found = {thread.thread_id: thread.pending for thread in await server.threads(waiting=True)}
    assert found[driver.thread_id] == asked.interrupts


async def test_pending_questions_show_in_the_list_of_threads(server: Server) -> None:
    """A new client finds what waits for a human."""
    driver, events = await start(server, "ask")
    asked = events[-1]
    assert isinstance(asked, Interrupted)
    (found,) = [thread for thread in await server.threads() if thread.thread_id == driver.thread_id]
    assert (found.graph, found.status, found.pending) == ("work", "interrupted", asked.interrupts)


async def test_left_run_is_joined_without_a_gap_or_a_repetition(server: Server) -> None:
    """A client that leaves in mid-stream goes on after the last event it saw."""
    driver = await server.new_thread("work")
    seen: list[str] = []
    async with aclosing(driver.start({"do": "tick"})) as events:
        async for event in events:
            if isinstance(event, Progress):
                seen.append(event.message)
            if len(seen) == 5:
                break
    other = server.thread("work", driver.thread_id)
    rest = [event async for event in other.join(driver.run_id, last_event_id=driver.last_event_id)]
    seen += [event.message for event in rest if isinstance(event, Progress)]
    assert seen == [str(number) for number in range(client_graph.TICKS)]
    assert isinstance(rest[-1], Finished)


async def test_busy_thread_is_refused_and_cancel_frees_it(server: Server) -> None:
    """A second run neither queues nor disturbs the first; a cancelled run says that it was."""
    driver = await server.new_thread("work")
    async with aclosing(driver.start({"do": "tick"})) as events:
        async for event in events:
            if isinstance(event, Progress):
                break
    with pytest.raises(BusyError, match=driver.thread_id):
        [event async for event in server.thread("work", driver.thread_id).start({"do": "say"})]
    assert await driver.cancel()
    assert not await driver.cancel()
    assert [event async for event in driver.join()][-1] == Failed(
        "The run was cancelled.", status="cancelled"
    )


async def test_errors_name_the_server(server: Server, dev: DevServer) -> None:
    """A wrong graph, a wrong thread and a wrong address are three clear errors."""
    driver = await server.new_thread("nope")
    with pytest.raises(RefusedError, match="registered graphs: work"):
        [event async for event in driver.start({})]
    unknown = "00000000-0000-4000-8000-000000000000"
    with pytest.raises(NotFoundError, match=f"{dev.url}, thread {unknown}"):
        [event async for event in server.thread("work", unknown).start({})]
    async with Server("http://127.0.0.1:1") as nowhere:
        with pytest.raises(UnreachableError, match=r"http://127\.0\.0\.1:1\)"):
            await nowhere.info()


async def test_info_and_graphs_describe_the_server(server: Server) -> None:
    """What `doctor` shows."""
    assert "version" in await server.info()
    assert await server.graphs() == ["work"]
