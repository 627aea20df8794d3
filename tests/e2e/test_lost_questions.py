"""Questions that `langgraph dev` loses from its threads' states: still found, asked again, answered."""

import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from langgraph_sdk import get_client

from agent.client import Failed, Finished, Interrupt, Interrupted, Server, StaleAnswerError, ThreadSummary
from support import client_graph
from support.langgraph_dev import DevServer
from support.terminal import Terminal

PROGRAM = str(Path(sys.executable).parent / "sandbox-agent")
DO = ("ask", "ask both", "ask what changes", "ask slowly", "ask, and be answered wrongly")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def dev(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DevServer]:
    """A development server that may be restarted."""
    folder = tmp_path_factory.mktemp("lost-questions")
    config = folder / "config.json"
    graphs = {"work": f"{Path(client_graph.__file__)}:graph"}
    config.write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    async with DevServer(config, folder) as running:
        yield running
        running.assert_no_blocking_errors()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def asked(dev: DevServer) -> dict[str, tuple[str, tuple[Interrupt, ...]]]:
    """What was asked before the server lost it: thread and questions, by what the thread did.

    Once a thread that had run was deleted, langgraph-runtime-inmem 0.36.7 saves no question that comes after.
    """
    found = {}
    async with Server(dev.url) as server, get_client(url=dev.url) as client:
        driver = await server.new_thread("work")
        assert isinstance([event async for event in driver.start({"do": "say"})][-1], Finished)
        await client.threads.delete(driver.thread_id)
        for do in DO:
            driver = await server.new_thread("work")
            *_, end = [event async for event in driver.start({"do": do.partition(",")[0]})]
            assert isinstance(end, Interrupted)
            if do.endswith("wrongly"):
                answers = {question.id: "rubbish" for question in end.interrupts}
                assert isinstance([event async for event in driver.answer(answers)][-1], Failed)
            found[do] = driver.thread_id, end.interrupts
    await dev.restart()
    async with get_client(url=dev.url) as client:
        for thread_id, _ in found.values():
            state = await client.threads.get_state(thread_id)
            assert state["next"], "the thread stands at the step that asked"
            assert not state["interrupts"], "the server loses no questions any more: `open_questions` can go"
    return found


async def summary(server: Server, thread_id: str) -> ThreadSummary:
    """Return a thread as the list of those that wait shows it."""
    (found,) = [thread for thread in await server.threads(waiting=True) if thread.thread_id == thread_id]
    return found


async def test_lost_question_waits_as_any_other(
    dev: DevServer, asked: dict[str, tuple[str, tuple[Interrupt, ...]]]
) -> None:
    """It is listed and shown, the run that asked has not finished, and a sweep sees a thread that waits."""
    thread_id, questions = asked["ask"]
    async with Server(dev.url) as server:
        driver = server.thread("work", thread_id)
        assert await driver.pending() == questions
        assert (await driver.account()).pending == questions
        assert [event async for event in driver.join()][-1] == Interrupted(questions)
        listed = await summary(server, thread_id)
        assert listed.pending == questions
        assert (await server.standing(thread_id)).standing == "waiting"


async def test_answer_to_a_lost_question_is_taken(
    dev: DevServer, asked: dict[str, tuple[str, tuple[Interrupt, ...]]]
) -> None:
    """The step asks again, unseen, and goes on with the answer; the other question of two stays open."""
    thread_id, (left, right) = asked["ask both"]
    async with Server(dev.url) as server:
        driver = server.thread("work", thread_id)
        *_, end = [event async for event in driver.answer({left.id: {"decisions": "1"}})]
        assert end == Interrupted((right,))
        *_, end = [event async for event in driver.answer({right.id: {"decisions": "2"}})]
        assert isinstance(end, Finished)
        assert sorted(end.values["seen"]) == ["ask both", "left:1", "right:2"]
        assert await driver.pending() == ()


async def test_answer_meets_no_other_question(
    dev: DevServer, asked: dict[str, tuple[str, tuple[Interrupt, ...]]]
) -> None:
    """Where the step asks something else now, nothing is answered; the new question is there to be seen."""
    thread_id, (question,) = asked["ask what changes"]
    async with Server(dev.url) as server:
        driver = server.thread("work", thread_id)
        with pytest.raises(StaleAnswerError, match="does not ask the same again") as refused:
            [event async for event in driver.answer({question.id: {"decisions": "1"}})]
        (now,) = await driver.pending()
        assert refused.value.open_now == (now.id,)
        assert now.value != question.value
        *_, end = [event async for event in driver.answer({now.id: {"decisions": "2"}})]
        assert isinstance(end, Finished)
        assert len(end.values["seen"]) == 2


async def test_question_of_which_nothing_is_left_still_waits(
    dev: DevServer, asked: dict[str, tuple[str, tuple[Interrupt, ...]]]
) -> None:
    """A malformed answer had taken it from the thread's record, too: it is asked again to be seen."""
    thread_id, questions = asked["ask, and be answered wrongly"]
    async with Server(dev.url) as server:
        driver = server.thread("work", thread_id)
        assert await driver.pending() == ()
        assert (await driver.account()).waits
        listed = await summary(server, thread_id)
        assert listed.waits
        assert (await server.standing(thread_id)).standing == "waiting"
        assert [event async for event in driver.ask_again()][-1] == Interrupted(questions)
        *_, end = [event async for event in driver.answer({questions[0].id: {"decisions": "1"}})]
        assert isinstance(end, Finished)
        assert not (await driver.account()).waits


def test_ctrl_c_while_it_is_asked_again_says_that_the_answer_was_not_sent(
    dev: DevServer, asked: dict[str, tuple[str, tuple[Interrupt, ...]]], tmp_path: Path
) -> None:
    """The question stays open, and a later answer is taken."""
    thread_id, _ = asked["ask slowly"]
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANGGRAPH_URL": dev.url}
    command = [PROGRAM, "resume", thread_id]
    with Terminal(command, env=env, cwd=tmp_path) as terminal:
        terminal.expect("Approval needed")
        terminal.expect("Allow this?")
        terminal.type("y\n")
        terminal.expect("Going on with the answer")
        terminal.type("\x03")
        terminal.expect(
            f"Your answer was not sent; the question stays open: sandbox-agent resume {thread_id}"
        )
        assert terminal.wait() == 130
    with Terminal([*command, "--yes"], env=env, cwd=tmp_path) as terminal:
        terminal.expect("Approved automatically")
        assert terminal.wait() == 0
