"""`langgraph dev` with a checkpointer on a file, killed (SIGKILL) in mid-run and started again."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from langgraph_sdk import get_client

from agent.cli.project import absolute_config
from support import durable, worker
from support.alive import alive
from support.e2b_process import E2BLocal
from support.langgraph_dev import DevServer
from support.openai_server import OpenAIServer
from support.played_model import PlayedModel
from support.repairs import APPROVE, FOUR, TEST_COMMAND, Mind, plan, run_the_change
from support.worker import ASK, command, python, saying

ROOT = Path(__file__).parents[2]
DEPLOYMENT = "killed-server"
SLOW = "sleep 60; "


@dataclass
class Killed:
    """What was going on when the server was killed: thread, run and sandbox of each."""

    dev: DevServer
    mind: Mind
    repair: tuple[str, str, str]
    asking: tuple[str, str, str]
    working: tuple[str, str, str]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def killed(sandboxes: E2BLocal, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Killed]:
    """A repair in step 2 of 4, an open question and a command at work; then a kill, and a start."""
    folder = tmp_path_factory.mktemp("killed")
    served = absolute_config(json.loads((ROOT / "langgraph.json").read_text()), ROOT)
    served["graphs"]["worker"] = f"{worker.__file__}:graph"
    served["checkpointer"] = {"path": f"{durable.__file__}:checkpointer"}
    (folder / "config.json").write_text(json.dumps(served))
    mind = Mind()
    steps = [(f"{name}.sh", f"echo echo 1 > {name}.sh") for name in "abcd"]
    steps[1] = ("b.sh", SLOW + steps[1][1])
    mind.plans = [plan(*steps)]
    openai = OpenAIServer(PlayedModel(play=mind))
    env = {
        **sandboxes.env,
        **openai.env,
        "MODEL": "openai:gpt-5.6-luna",
        "DEPLOYMENT": DEPLOYMENT,
        "SANDBOX_INTERNET": "off",
        "CHECKPOINTS": str(folder / "checkpoints.db"),
        "PYTHONPATH": str(Path(worker.__file__).parents[1]),
    }
    arguments = ["--n-jobs-per-worker", "4"]
    try:
        async with DevServer(folder / "config.json", folder, env=env, arguments=arguments) as dev:
            before = await _begun(dev, mind, sandboxes)
            await asyncio.sleep(10)  # what is written every ten seconds is written by now
            await dev.kill()
            mind.act = lambda request, since: run_the_change(request.replace(SLOW, ""), since)
            await dev.restart()
            yield Killed(dev, mind, *before)
    finally:
        openai.stop()
    dev.assert_no_blocking_errors()


async def _begun(dev: DevServer, mind: Mind, sandboxes: E2BLocal) -> list[tuple[str, str, str]]:
    async with get_client(url=dev.url) as client:
        threads = [str((await client.threads.create())["thread_id"]) for _ in range(3)]
        repair, asking, working = threads
        given = {"project": FOUR, "test_command": TEST_COMMAND}
        await client.runs.wait(repair, "plan_execute", input=given)
        (question,) = (await client.threads.get_state(repair))["interrupts"]
        approved = {"resume": {question["id"]: APPROVE}}
        runs = [
            await client.runs.create(repair, "plan_execute", command=approved),
            await client.runs.create(
                asking, "worker", input=saying([python("x = 9")], [ASK], [python("print(x)")])
            ),
            await client.runs.create(working, "worker", input=saying([python("y = 8")], *ONCE)),
        ]
        await client.runs.join(asking, runs[1]["run_id"])
        async with asyncio.timeout(60):
            while len(mind.told) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        boxes = [(await alive(sandboxes, thread=thread))[0].sandbox_id for thread in threads]
        return [(thread, run["run_id"], box) for thread, run, box in zip(threads, runs, boxes, strict=True)]


ONCE = [[command("test -e ~/again || { touch ~/again; sleep 60; }")], [python("print(y)")]]


async def test_repair_repeats_no_finished_step(killed: Killed, sandboxes: E2BLocal) -> None:
    """Killed in step 2 of 4, more than ten seconds after step 1: the same run goes on with step 2 (A20)."""
    thread, run, _ = killed.repair
    async with get_client(url=killed.dev.url) as client:
        await client.runs.join(thread, run)
        values: Any = (await client.threads.get_state(thread))["values"]
    assert values["status"] == "passed"
    assert [step["file"] for step in values["steps"]] == ["a.sh", "b.sh", "c.sh", "d.sh"]
    assert [int(told.split()[1]) for told in killed.mind.told] == [1, 2, 2, 3, 4]
    assert await alive(sandboxes, thread=thread) == []


async def test_question_is_answered_in_the_same_sandbox(killed: Killed, sandboxes: E2BLocal) -> None:
    """Asked before the kill, answered after it: the variable is still there (A9)."""
    thread, _, box = killed.asking
    assert [info.sandbox_id for info in await alive(sandboxes, thread=thread)] == [box]
    async with get_client(url=killed.dev.url) as client:
        (question,) = (await client.threads.get_state(thread))["interrupts"]
        answer = {"resume": {question["id"]: "yes"}}
        values: Any = await client.runs.wait(thread, "worker", command=answer)
    assert [message["content"] for message in values["messages"] if message["type"] == "tool"][1:] == [
        "yes",
        "<stdout>\n9\n</stdout>",
    ]
    assert await alive(sandboxes, thread=thread) == []


async def test_run_goes_on_with_the_call_it_was_in(killed: Killed, sandboxes: E2BLocal) -> None:
    """The cell before it is not run again, the call is; no second sandbox is made (A10, A20)."""
    thread, run, _ = killed.working
    async with get_client(url=killed.dev.url) as client:
        await client.runs.join(thread, run)
        values: Any = (await client.threads.get_state(thread))["values"]
    assert values["messages"][-1]["content"] == "done"
    assert values["messages"][-2]["content"] == "<stdout>\n8\n</stdout>"
    assert await alive(sandboxes, thread=thread) == []
