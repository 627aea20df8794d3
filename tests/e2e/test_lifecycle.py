"""A sandbox's life under a real `langgraph dev`: cancels, questions, restarts, failures, foreign ids."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from e2b import SandboxInfo
from e2b_code_interpreter import AsyncSandbox
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from support import worker
from support.alive import alive, until_alive
from support.e2b_process import E2BLocal
from support.langgraph_dev import DevServer
from support.worker import ASK, DAWDLE, FAIL, STUMBLE, command, python, saying

DEPLOYMENT = "lifecycle"
LONG = command("echo started; sleep 300")
KEPT = {"keep": "thread"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def dev(sandboxes: E2BLocal, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DevServer]:
    """The worker, served."""
    folder = tmp_path_factory.mktemp("lifecycle")
    config = folder / "config.json"
    config.write_text(
        json.dumps(
            {
                "dependencies": ["."],
                "graphs": {"worker": f"{Path(worker.__file__)}:graph"},
                "http": {"app": "agent.server.webapp:app"},
            }
        )
    )
    env = {"DEPLOYMENT": DEPLOYMENT, "PYTHONPATH": str(Path(worker.__file__).parents[1]), **sandboxes.env}
    async with DevServer(config, folder, env=env, arguments=["--n-jobs-per-worker", "8"]) as running:
        yield running
    running.assert_no_blocking_errors()


@pytest.fixture
async def client(dev: DevServer, sandboxes: E2BLocal) -> AsyncIterator[LangGraphClient]:
    """The SDK's client; at the end one sweep leaves nothing that the test's threads do not account for."""
    async with get_client(url=dev.url) as client:
        yield client
    sandboxes.clear_faults()


async def new_thread(client: LangGraphClient) -> str:
    """Return a new thread's id."""
    return str((await client.threads.create())["thread_id"])


async def boxes(sandboxes: E2BLocal, thread: str) -> list[SandboxInfo]:
    """Return the thread's sandboxes."""
    return await alive(sandboxes, deployment=DEPLOYMENT, thread=thread)


async def started(client: LangGraphClient, thread: str, *turns: Any, **more: Any) -> str:
    """Start a run and return its id once the last call has printed `started`."""
    run = await client.runs.create(
        thread, "worker", input=saying(*turns), stream_mode="custom", stream_resumable=True, **more
    )
    async for part in client.runs.join_stream(thread, run["run_id"], last_event_id="-1"):
        if part.event == "custom" and "started" in str(part.data.get("text", "")):
            return str(run["run_id"])
    raise AssertionError("the run ended before its command started")


async def until_over(client: LangGraphClient, thread: str, run: str) -> str:
    """Return how a run ended."""
    with suppress(APIStatusError):
        await client.runs.join(thread, run)
    with suppress(APIStatusError):
        return str((await client.runs.get(thread, run))["status"])
    return "gone"


async def running(info: SandboxInfo, sandboxes: E2BLocal, word: str) -> int:
    """Return how many processes of a sandbox have `word` in their command line."""
    sandbox = await AsyncSandbox.connect(info.sandbox_id, timeout=300, **sandboxes.options)
    done = await sandbox.commands.run(
        f"cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o '[{word[0]}]{word[1:]}' | wc -l"
    )
    return int(done.stdout)


def texts(state: dict[str, Any]) -> list[str]:
    """Return the texts of the thread's tool messages."""
    return [message["content"] for message in state["messages"] if message["type"] == "tool"]


def sweep(
    dev: DevServer, sandboxes: E2BLocal, *arguments: str, deployment: str = DEPLOYMENT
) -> tuple[int, str]:
    """Run the command as its user does; return its exit code and what it printed."""
    done = subprocess.run(
        [Path(sys.executable).parent / "sandbox-agent", "sandboxes", *arguments, "--server", dev.url],
        env={**sandboxes.env, "DEPLOYMENT": deployment, "COLUMNS": "300", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


async def test_a_whole_run_sends_one_create_its_calls_and_one_kill(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """No request to E2B beyond what the work needs."""
    sandboxes.inject("delay", "", times=10_000)
    calls = [[command("echo one")], [python("1 + 1")], [command("true"), command("false")]]
    state = await client.runs.wait(await new_thread(client), "worker", input=saying(*calls))
    assert sandboxes.faults()[0]["hits"] == 1 + 4 + 1
    assert texts(state)[0].startswith("exit_code: 0")
    assert state["sandbox_id"] == ""


async def test_cancel_ends_the_command_and_the_next_turn_goes_on(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """After a cancel nothing runs on; a new message finds the sandbox and a whole history (A55, A56)."""
    thread = await new_thread(client)
    run = await started(client, thread, [python("x = 7")], [LONG])
    (box,) = await boxes(sandboxes, thread)
    await client.runs.cancel(thread, run, wait=True)
    async with asyncio.timeout(2):
        while await running(box, sandboxes, "sleep 300"):  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.05)
    state = await client.runs.wait(thread, "worker", input=saying([python("print(x)")]))
    assert texts(state)[-1] == "<stdout>\n7\n</stdout>"
    assert await boxes(sandboxes, thread) == []


async def test_cancel_interrupts_a_cell(client: LangGraphClient, sandboxes: E2BLocal) -> None:
    """A cell that would run on is interrupted: the kernel answers the next turn at once."""
    thread = await new_thread(client)
    run = await started(
        client, thread, [python("import time\nprint('started')\nwhile True: time.sleep(0.01)")]
    )
    await client.runs.cancel(thread, run, wait=True)
    state = await client.runs.wait(thread, "worker", input=saying([python("print(time is not None)")]))
    assert texts(state)[-1] == "<stdout>\nTrue\n</stdout>"


@pytest.mark.parametrize("start", ["eager", "lazy"])
async def test_rollback_leaves_no_sandbox(client: LangGraphClient, sandboxes: E2BLocal, start: str) -> None:
    """State forgets the run, and what the run made is ended."""
    thread = await new_thread(client)
    run = await started(client, thread, [LONG], context={"start": start})
    await client.runs.cancel(thread, run, wait=True, action="rollback")
    await until_alive(sandboxes, 0, thread=thread)
    assert not (await client.threads.get_state(thread))["values"]


async def test_cancel_of_a_lazy_first_call_leaves_no_sandbox(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """Its id never reached state, so that no later turn could find it (A14)."""
    thread = await new_thread(client)
    run = await started(client, thread, [LONG], context={"start": "lazy"})
    await client.runs.cancel(thread, run, wait=True)
    await until_alive(sandboxes, 0, thread=thread)


@pytest.mark.parametrize("strategy", ["reject", "enqueue", "interrupt", "rollback"])
async def test_a_second_run_on_a_busy_thread(
    client: LangGraphClient, sandboxes: E2BLocal, strategy: Any
) -> None:
    """Refused, queued, or in place of the first: never the first's command beside the second's (A54)."""
    thread = await new_thread(client)
    first = await started(client, thread, [command("echo started; sleep 4; echo first-over")])
    looking = saying([command("pgrep -f '[s]leep 4' || echo nothing-else-runs")])
    if strategy == "reject":
        with pytest.raises(APIStatusError) as caught:
            await client.runs.create(thread, "worker", input=looking, multitask_strategy="reject")
        assert caught.value.response.status_code == 409
        assert await until_over(client, thread, first) == "success"
        return
    second = await client.runs.create(thread, "worker", input=looking, multitask_strategy=strategy)
    most = 0
    waiting = asyncio.create_task(until_over(client, thread, second["run_id"]))
    while not waiting.done():
        most = max(most, len(await boxes(sandboxes, thread)))
        await asyncio.sleep(0.05)
    assert await waiting == "success"
    state = (await client.threads.get_state(thread))["values"]
    assert "nothing-else-runs" in texts(state)[-1]
    assert any("first-over" in text for text in texts(state)) is (strategy == "enqueue")
    # With rollback the next run begins while the first's sandbox is being ended.
    assert most <= (2 if strategy == "rollback" else 1)
    await until_alive(sandboxes, 0, thread=thread)


async def test_a_question_pauses_at_once_and_the_answer_finds_everything_after_a_restart(
    client: LangGraphClient, dev: DevServer, sandboxes: E2BLocal
) -> None:
    """Paused when asked; the server restarts; the same sandbox answers with its variables (A9, A48)."""
    thread = await new_thread(client)
    await client.runs.wait(
        thread, "worker", input=saying([python("x = 41")], [ASK], [python("print(x + 1)")])
    )
    (box,) = await boxes(sandboxes, thread)
    assert box.state.value == "paused"
    await dev.restart()
    state = await client.threads.get_state(thread)
    (question,) = state["interrupts"]
    assert state["values"]["sandbox_id"] == box.sandbox_id
    answer = {question["id"]: "yes"}
    values: Any = await client.runs.wait(thread, "worker", command={"resume": answer})
    assert texts(values) == ["ok, no output", "yes", "<stdout>\n42\n</stdout>"]
    assert await boxes(sandboxes, thread) == []


async def test_a_lazy_sandbox_whose_first_call_asks_is_found_again(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """Its id never reached state: the answer's run finds it by its metadata."""
    thread = await new_thread(client)
    lazy = {"start": "lazy"}
    turns = [[python("y = 1"), ASK], [python("print(y)")]]
    await client.runs.wait(thread, "worker", input=saying(*turns), context=lazy)
    (box,) = await boxes(sandboxes, thread)
    assert box.state.value == "paused"
    (question,) = (await client.threads.get_state(thread))["interrupts"]
    resume = {"resume": {question["id"]: "yes"}}
    values: Any = await client.runs.wait(thread, "worker", command=resume, context=lazy)
    assert texts(values)[-1] == "<stdout>\n1\n</stdout>"
    assert await boxes(sandboxes, thread) == []


async def test_a_sandbox_lost_while_a_human_thought_is_replaced_and_told(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """The client's stream and the model's prompt both say so; the next turn is not told again (A3)."""
    thread = await new_thread(client)
    await client.runs.wait(thread, "worker", input=saying([python("x = 1")], [ASK], [python("print(2)")]))
    (box,) = await boxes(sandboxes, thread)
    await AsyncSandbox.kill(box.sandbox_id, **sandboxes.options)
    (question,) = (await client.threads.get_state(thread))["interrupts"]
    events = [
        part.data
        async for part in client.runs.stream(
            thread, "worker", command={"resume": {question["id"]: "yes"}}, stream_mode="custom"
        )
        if part.event == "custom" and part.data["type"] == "sandbox"
    ]
    assert [event["event"] for event in events] == ["replaced", "ended"]
    values: Any = (await client.threads.get_state(thread))["values"]
    assert values["messages"][-1]["content"] == "done; told of a loss"
    values = await client.runs.wait(thread, "worker", input=saying([python("print(3)")]))
    assert values["messages"][-1]["content"] == "done"


async def test_a_message_instead_of_an_answer_abandons_the_question(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """The same sandbox, an answered history, no question left (A43)."""
    thread = await new_thread(client)
    await client.runs.wait(thread, "worker", input=saying([python("x = 5")], [ASK]))
    values: Any = await client.runs.wait(thread, "worker", input=saying([python("print(x)")]))
    assert texts(values)[-1] == "<stdout>\n5\n</stdout>"
    assert not (await client.threads.get_state(thread))["interrupts"]
    assert await boxes(sandboxes, thread) == []


async def test_failed_runs_leave_at_most_one_sandbox_and_the_next_turn_works(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """A tool that raises, the recursion limit: the state says so, and the thread goes on (A14, A57)."""
    thread = await new_thread(client)
    for turns, more in (
        ([[python("z = 3")], [FAIL]], {}),
        ([[python("z")]] * 6, {"config": {"recursion_limit": 6}}),
    ):
        run = await client.runs.create(thread, "worker", input=saying(*turns), **more)  # type: ignore[arg-type]
        assert await until_over(client, thread, run["run_id"]) == "error"
        assert len(await boxes(sandboxes, thread)) == 1
    values: Any = await client.runs.wait(thread, "worker", input=saying([python("print(z)")]))
    assert texts(values)[-1] == "<stdout>\n3\n</stdout>"
    assert await boxes(sandboxes, thread) == []


async def test_another_threads_id_is_never_used_wherever_it_comes_from(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """By input, config, metadata, context, update_state, Command(update), a copied thread (decision 2)."""
    theirs = await new_thread(client)
    await client.runs.wait(theirs, "worker", input=saying([python("secret = 1")]), context=KEPT)
    (box,) = await boxes(sandboxes, theirs)
    sandboxes.inject("delay", f"(POST|PUT|PATCH|DELETE) /.*{box.sandbox_id}", times=10_000)
    looking = saying([python("print('secret' in globals())")])
    forged = {"sandbox_id": box.sandbox_id}

    async def check(thread: str, **more: Any) -> None:
        values: Any = await client.runs.wait(thread, "worker", **{"input": looking, **more})
        assert texts(values)[-1] == "<stdout>\nFalse\n</stdout>"
        assert values["messages"][-1]["content"] == "done"

    await check(await new_thread(client), input=looking | forged)
    await check(await new_thread(client), config={"configurable": forged})
    with suppress(APIStatusError):
        await check(await new_thread(client), context=forged)
    run = {"run_id": (await client.runs.list(theirs))[0]["run_id"], "run_attempt": 2}
    posing: dict[str, Any] = {"config": {"configurable": forged | run, "metadata": run}, "metadata": run}
    await check(await new_thread(client), **posing)
    updated = await new_thread(client)
    await client.runs.wait(updated, "worker", input=saying())
    await client.threads.update_state(updated, forged)
    await check(updated, **posing)
    commanded = await new_thread(client)
    await client.runs.wait(commanded, "worker", input=saying())
    await check(
        commanded, input=None, command={"update": looking | forged, "goto": "SandboxMiddleware.before_agent"}
    )
    copied = await client.threads.copy(theirs)
    copied_state: Any = await client.threads.get_state(copied["thread_id"])
    assert copied_state["values"]["sandbox_id"] == box.sandbox_id
    await check(copied["thread_id"])
    assert sandboxes.faults()[0]["hits"] == 0
    sandboxes.clear_faults()
    values: Any = await client.runs.wait(theirs, "worker", input=saying([python("print(secret)")]))
    assert texts(values)[-1] == "<stdout>\n1\n</stdout>"


async def test_sweep_ends_what_deleted_and_cancelled_threads_left(
    client: LangGraphClient, dev: DevServer, sandboxes: E2BLocal
) -> None:
    """Asked, deleted: ended by a sweep. Asked, still open: spared. Ended runs leave nothing (A58)."""
    kept, deleted = await new_thread(client), await new_thread(client)
    for thread in (kept, deleted):
        await client.runs.wait(thread, "worker", input=saying([python("x = 1")], [ASK]))
    await client.threads.delete(deleted)
    (gone,) = await boxes(sandboxes, deleted)
    code, listed = sweep(dev, sandboxes, "list")
    assert code == 0
    assert (
        f"{gone.sandbox_id}  end  its thread is gone\n    thread {deleted}  worker  keep=run  paused"
        in listed
    )
    assert sweep(dev, sandboxes, "sweep", "--dry-run")[0] == 0
    assert len(await boxes(sandboxes, deleted)) == 1
    code, swept = sweep(dev, sandboxes, "sweep")
    assert code == 0
    assert "its thread waits for a human" in swept
    assert await boxes(sandboxes, deleted) == []
    (asked,) = await boxes(sandboxes, kept)
    assert asked.state.value == "paused"


async def test_sweep_spares_what_a_later_turn_keeps(
    client: LangGraphClient, dev: DevServer, sandboxes: E2BLocal
) -> None:
    """Made for a run that failed, then kept for the thread: the newest word counts."""
    thread = await new_thread(client)
    run = await client.runs.create(thread, "worker", input=saying([python("x = 1")], [FAIL]))
    assert await until_over(client, thread, run["run_id"]) == "error"
    (left,) = await boxes(sandboxes, thread)
    assert left.metadata["keep"] == "run"
    await client.runs.wait(thread, "worker", input=saying([python("x")]), context=KEPT)
    code, swept = sweep(dev, sandboxes, "sweep")
    assert code == 0
    assert f"{left.sandbox_id}  spare  idle for" in swept
    assert [box.sandbox_id for box in await boxes(sandboxes, thread)] == [left.sandbox_id]


def test_sweep_refuses_a_server_of_another_deployment(dev: DevServer, sandboxes: E2BLocal) -> None:
    """There no thread is known: everything would look left behind."""
    code, words = sweep(dev, sandboxes, "sweep", deployment="production")
    assert code == 2
    assert "is deployment 'lifecycle' and DEPLOYMENT is 'production'" in words


async def test_runs_without_a_thread_end_their_sandbox(client: LangGraphClient, sandboxes: E2BLocal) -> None:
    """However it is kept, and also where they ask a human who can never answer, fail, or stop at a node."""
    before = {box.sandbox_id for box in await alive(sandboxes, deployment=DEPLOYMENT)}
    await client.runs.wait(None, "worker", input=saying([python("1")]))
    assert {box.sandbox_id for box in await alive(sandboxes, deployment=DEPLOYMENT)} == before
    await client.runs.wait(None, "worker", input=saying([python("1")]), context=KEPT)
    await client.runs.wait(None, "worker", input=saying([python("1")], [ASK]))
    await client.runs.wait(None, "worker", input=saying([python("1")]), interrupt_before=["tools"])
    failed: Any = await client.runs.wait(
        None, "worker", input=saying([python("1")]), config={"recursion_limit": 5}, raise_error=False
    )
    assert failed["__error__"]["error"] == "GraphRecursionError"
    assert {box.sandbox_id for box in await alive(sandboxes, deployment=DEPLOYMENT)} == before


async def test_a_stopped_server_runs_the_run_again_in_the_same_sandbox(
    client: LangGraphClient, dev: DevServer, sandboxes: E2BLocal
) -> None:
    """SIGTERM during a call, then a start: the run goes on where it was, with its one sandbox (A13, A20)."""
    thread = await new_thread(client)
    slow = command("echo started; sleep 2; echo over >> ~/log; cat ~/log")
    run = await started(client, thread, [python("x = 9")], [slow], [python("print(x)")])
    (box,) = await boxes(sandboxes, thread)
    await dev.restart()
    assert await until_over(client, thread, run) == "success"
    values: Any = (await client.threads.get_state(thread))["values"]
    assert texts(values)[-1] == "<stdout>\n9\n</stdout>"
    assert values["messages"][-1]["content"] == "done"
    assert box.sandbox_id not in {info.sandbox_id for info in await boxes(sandboxes, thread)}


async def test_a_run_that_the_server_begins_again_is_the_same_run(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """Its second attempt goes on in its sandbox, a question pauses it, and a rollback ends it (A14, A20).

    LangGraph's id of the run is another then.
    """
    asking, taken_back = await new_thread(client), await new_thread(client)
    asked: Any = await client.runs.wait(
        asking, "worker", input=saying([python("x = 9")], [STUMBLE], [ASK], [python("print(x)")])
    )
    assert asked["__interrupt__"]
    (box,) = await boxes(sandboxes, asking)
    assert box.state.value == "paused"
    (question,) = (await client.threads.get_state(asking))["interrupts"]
    answer = {"resume": {question["id"]: "yes"}}
    values: Any = await client.runs.wait(asking, "worker", command=answer)
    assert texts(values)[-1] == "<stdout>\n9\n</stdout>"
    assert await boxes(sandboxes, asking) == []
    first = command("echo first >> ~/log")
    run = await started(client, taken_back, [first], [STUMBLE], [LONG], context=KEPT)
    assert len(await boxes(sandboxes, taken_back)) == 1
    await client.runs.cancel(taken_back, run, wait=True, action="rollback")
    await until_alive(sandboxes, 0, deployment=DEPLOYMENT, thread=taken_back)


async def test_a_killed_server_takes_new_runs_and_does_the_old_one_again(
    client: LangGraphClient, dev: DevServer, sandboxes: E2BLocal
) -> None:
    """`kill -9` in mid-run, then a start: others are served, and a sweep ends what was left (A10, A21)."""
    thread = await new_thread(client)
    run = await started(client, thread, [python("x = 9")], [DAWDLE], [python("print(x)")])
    (left,) = await boxes(sandboxes, thread)
    await client.threads.get_state(thread)  # langgraph-runtime-inmem 0.36.7 saves no checkpoint from here on
    await dev.kill()
    await dev.restart()
    other = await new_thread(client)
    new = await client.runs.create(other, "worker", input=saying([python("print(1)")]))
    assert await until_over(client, other, new["run_id"]) == "success"
    assert await until_over(client, thread, run) == "success"
    values: Any = (await client.threads.get_state(thread))["values"]
    assert texts(values)[-1] == "<stdout>\n9\n</stdout>"
    for info in await boxes(sandboxes, thread):
        assert info.sandbox_id == left.sandbox_id
        await AsyncSandbox.pause(info.sandbox_id, **sandboxes.options)  # as its lease does
    assert sweep(dev, sandboxes, "sweep")[0] == 0
    assert await boxes(sandboxes, thread) == []
