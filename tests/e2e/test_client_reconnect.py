"""The client when the connection breaks, the client goes, or the server restarts."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from agent.client import Finished, Interrupted, Progress, Server, Started, StreamLostError
from support import client_graph
from support.langgraph_dev import DevServer
from support.tcp_proxy import TcpProxy

TICKS = [str(number) for number in range(client_graph.TICKS)]

ANSWER_IN_ANOTHER_PROCESS = """
import asyncio, sys
from agent.client import Finished, Server

async def main(url, thread_id):
    async with Server(url) as server:
        (summary,) = [thread for thread in await server.threads() if thread.thread_id == thread_id]
        (question,) = summary.pending
        driver = server.thread(summary.graph, thread_id)
        async for event in driver.answer({question.id: {"decisions": "from afar"}}):
            if isinstance(event, Finished):
                print(event.values["seen"][-1])

asyncio.run(main(*sys.argv[1:]))
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def dev(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DevServer]:
    """A development server that these tests may restart."""
    folder = tmp_path_factory.mktemp("reconnect")
    config = folder / "config.json"
    config.write_text(json.dumps({"dependencies": ["."], "graphs": {"work": f"{_graph_file()}:graph"}}))
    async with DevServer(config, folder) as server:
        yield server
        server.assert_no_blocking_errors()


def _graph_file() -> Path:
    return Path(client_graph.__file__)


async def test_connections_cut_in_mid_stream_lose_and_repeat_nothing(dev: DevServer) -> None:
    """Two cuts in one run: the caller sees each progress event once, in order, and the end."""
    async with TcpProxy(dev.url) as proxy, Server(proxy.url) as server:
        driver = await server.new_thread("work")
        seen: list[str] = []
        async for event in driver.start({"do": "tick"}):
            if isinstance(event, Progress):
                seen.append(event.message)
                if event.message in {"5", "20"}:
                    proxy.cut()
        assert seen == TICKS
        assert isinstance(event, Finished)
        assert proxy.connections >= 3


async def test_stream_that_stays_broken_is_lost_and_can_be_joined_later(dev: DevServer) -> None:
    """The error says how to go on, and going on from there loses nothing."""
    async with TcpProxy(dev.url) as proxy, Server(proxy.url, reconnect_s=0.5) as server:
        driver = await server.new_thread("work")
        seen: list[str] = []

        async def follow() -> None:
            async for event in driver.start({"do": "tick"}):
                if isinstance(event, Progress):
                    seen.append(event.message)
                    if event.message == "3":
                        proxy.refusing = True
                        proxy.cut()

        with pytest.raises(StreamLostError, match=rf"run {driver.run_id or '.*'}.*join it after event"):
            await follow()
    async with Server(dev.url) as server:
        later = server.thread("work", driver.thread_id)
        rest = [event async for event in later.join(driver.run_id, last_event_id=driver.last_event_id)]
    seen += [event.message for event in rest if isinstance(event, Progress)]
    assert seen == TICKS
    assert isinstance(rest[-1], Finished)


async def test_question_survives_a_restart_and_is_answered_from_another_process(dev: DevServer) -> None:
    """Client and server both go; a new process finds the same question and answers it."""
    async with Server(dev.url) as server:
        driver = await server.new_thread("work")
        *_, asked = [event async for event in driver.start({"do": "ask"})]
        assert isinstance(asked, Interrupted)
    await dev.restart()
    async with Server(dev.url) as server:
        assert await server.thread("work", driver.thread_id).pending() == asked.interrupts
    command = [sys.executable, "-c", ANSWER_IN_ANOTHER_PROCESS, dev.url, driver.thread_id]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)  # noqa: ASYNC221
    assert done.stdout == "left:from afar\n"


async def test_run_goes_on_over_a_restart_of_the_server(dev: DevServer) -> None:
    """The server runs an unfinished run again; the client that waited sees its end."""
    async with Server(dev.url) as server:
        driver = await server.new_thread("work")
        attempts = []
        restarted = False
        async for event in driver.start({"do": "tick"}):
            if isinstance(event, Started):
                attempts.append(event.attempt)
            if isinstance(event, Progress) and not restarted:
                restarted = True
                await dev.restart()
        assert isinstance(event, Finished)
        assert event.values["seen"] == ["tick"]
        assert attempts[0] == 1
