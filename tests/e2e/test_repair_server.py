"""`plan_execute` on a real `langgraph dev`, the model's mind played by the test: stops, uploads, copies."""

import asyncio
import io
import os
import signal
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from support.alive import alive
from support.e2b_process import E2BLocal
from support.langgraph_dev import DevServer
from support.openai_server import OpenAIServer
from support.played_model import PlayedModel
from support.repairs import (
    ADD,
    APPROVE,
    CALC,
    DOUBLE,
    FOUR,
    STOP,
    TEST_COMMAND,
    Mind,
    edit,
    git_applied,
    packed,
    plan,
    reject,
    run_the_change,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model() -> PlayedModel:
    """The model, which gets another mind for each test."""
    return PlayedModel(play=Mind())


@pytest.fixture
def mind(model: PlayedModel) -> Mind:
    """What the model has in mind."""
    model.play = mind = Mind()
    return mind


@pytest.fixture(scope="module")
async def repairing(
    sandboxes: E2BLocal, model: PlayedModel, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[DevServer]:
    """A server that may be stopped and started again."""
    openai = OpenAIServer(model)
    env = {"MODEL": "openai:gpt-5.6-luna", "DEPLOYMENT": "repairing", "SANDBOX_INTERNET": "off"}
    folder = tmp_path_factory.mktemp("repairing")
    try:
        async with DevServer(
            ROOT / "langgraph.json",
            folder,
            env=env | sandboxes.env | openai.env,
            arguments=["--n-jobs-per-worker", "4"],
        ) as server:
            yield server
    finally:
        openai.stop()
    server.assert_no_blocking_errors()


@pytest.fixture
async def caller(repairing: DevServer) -> AsyncIterator[LangGraphClient]:
    """A client of it."""
    async with get_client(url=repairing.url) as client:
        yield client


async def new_thread(client: LangGraphClient) -> str:
    """Return a new thread's id."""
    return str((await client.threads.create())["thread_id"])


async def wait(client: LangGraphClient, thread_id: str, **request: Any) -> Any:
    """Run to the end or the next question, and return the state's values."""
    await client.runs.wait(thread_id, "plan_execute", **request)
    return (await client.threads.get_state(thread_id))["values"]


async def start(client: LangGraphClient, project: dict[str, str]) -> str:
    """Run to the question; return the thread's id."""
    thread_id = await new_thread(client)
    await wait(client, thread_id, input={"project": project, "test_command": TEST_COMMAND})
    return thread_id


async def resume(client: LangGraphClient, thread_id: str, reply: Any) -> dict[str, Any]:
    """Return the command that answers the thread's one question."""
    (question,) = (await client.threads.get_state(thread_id))["interrupts"]
    return {"resume": {question["id"]: reply}}


async def answer(client: LangGraphClient, thread_id: str, reply: Any) -> Any:
    """Answer the question, and return the state's values at the end or the next question."""
    return await wait(client, thread_id, command=await resume(client, thread_id, reply))


async def until(condition: Callable[[], bool], deadline_s: float = 60) -> None:
    """Wait for what the model's server notices in another thread."""
    async with asyncio.timeout(deadline_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def ended(client: LangGraphClient, thread_id: str, deadline_s: float = 60) -> Any:
    """Wait until the thread's run, begun in another process, has ended; return the state's values."""
    async with asyncio.timeout(deadline_s):
        while True:
            values = (await client.threads.get_state(thread_id))["values"]
            if values.get("status"):
                return values
            await asyncio.sleep(0.1)


def carried_out(mind: Mind) -> list[int]:
    """Return which steps the model was given, in order."""
    return [int(told.split()[1]) for told in mind.told]


async def test_turned_down_twice_then_approved_by_two(caller: LangGraphClient, mind: Mind) -> None:
    """Words, words, an approval: each plan is asked about once, and a second approval changes nothing."""
    mind.plans = [plan(ADD), plan(ADD), plan(ADD, DOUBLE)]
    thread_id = await start(caller, CALC)
    for words in ("both, please", "I said both"):
        await answer(caller, thread_id, reject(words))
    command = await resume(caller, thread_id, APPROVE)
    # Two people decide at the same moment: the second answer finds nothing to answer.
    first, second = await asyncio.gather(
        wait(caller, thread_id, command=command), wait(caller, thread_id, command=command)
    )
    assert first["status"] == second["status"] == "passed"
    assert carried_out(mind) == [1, 2]
    assert len(mind.asked) == 3
    assert [d["type"] for d in second["decisions"]] == ["reject", "reject", "approve"]


async def test_two_threads_at_once_keep_to_themselves(
    caller: LangGraphClient, mind: Mind, sandboxes: E2BLocal
) -> None:
    """Side by side, one plan approved, one edited: each mends its own project in its own sandbox."""
    slow = ("calc.sh", f"sleep 2; {ADD[1]}")
    mind.plans = [plan(slow, DOUBLE)]
    half = CALC | {"calc.sh": CALC["calc.sh"].replace(" + 1)", ")")}
    threads = await asyncio.gather(start(caller, CALC), start(caller, half))
    own = [sandbox.sandbox_id for thread in threads for sandbox in await alive(sandboxes, thread=thread)]
    assert len(set(own)) == 2
    both = await asyncio.gather(
        answer(caller, threads[0], APPROVE), answer(caller, threads[1], edit(plan(slow)))
    )
    assert sorted(carried_out(mind)) == [1, 1, 2]
    assert [values["status"] for values in both] == ["passed", "passed"]
    assert [[step["file"] for step in values["steps"]] for values in both] == [["calc.sh"] * 2, ["calc.sh"]]
    assert [values["diff"].count("\n+") for values in both] == [3, 2]
    assert [await alive(sandboxes, thread=thread) for thread in threads] == [[], []]


async def test_cancelled_step_is_begun_anew_and_the_ones_before_are_not(
    caller: LangGraphClient, mind: Mind, sandboxes: E2BLocal
) -> None:
    """Cancel in mid-step, then go on: the thread is not bricked, and step 1 is not repeated."""
    mind.plans = [plan(ADD, ("calc.sh", "sleep 30"), DOUBLE)]
    thread_id = await start(caller, CALC)
    run = await caller.runs.create(
        thread_id, "plan_execute", command=await resume(caller, thread_id, APPROVE)
    )
    await until(lambda: len(mind.told) == 2)
    await caller.runs.cancel(thread_id, run["run_id"], wait=True)
    state = await caller.threads.get_state(thread_id)
    assert (state["values"]["step"], state["next"]) == (1, ["execute"])
    mind.act = lambda request, since: run_the_change(request.replace("sleep 30", "true"), since)
    values = await wait(caller, thread_id, input=None)
    assert values["status"] == "passed"
    assert carried_out(mind) == [1, 2, 2, 3]
    assert await alive(sandboxes, thread=thread_id) == []


async def test_stopped_and_killed_server_goes_on_with_the_step_it_was_in(
    repairing: DevServer, mind: Mind, sandboxes: E2BLocal
) -> None:
    """SIGTERM in step 2 of 4, then kill -9 in it: step 1 is not repeated, and the same run ends (A20).

    The development server writes its checkpoints when it is stopped in an orderly way: what a kill finds on
    the disk is what the stop before it left.
    """
    steps = [(f"{name}.sh", f"echo ran >> /tmp/{name}; echo echo 1 > {name}.sh") for name in "abcd"]
    steps[1] = ("b.sh", f"sleep 30; {steps[1][1]}")
    mind.plans = [plan(*steps)]
    async with get_client(url=repairing.url) as client:
        thread_id = await start(client, FOUR)
        command = await resume(client, thread_id, APPROVE)
        run = await client.runs.create(thread_id, "plan_execute", command=command)
        await until(lambda: len(mind.told) == 2)
    await repairing.restart()
    await until(lambda: len(mind.told) == 3)
    assert repairing.pid is not None
    os.kill(repairing.pid, signal.SIGKILL)
    mind.act = lambda request, since: run_the_change(request.replace("sleep 30", "true"), since)
    await repairing.restart()
    async with get_client(url=repairing.url) as client:
        values = await ended(client, thread_id)
        await client.runs.join(thread_id, run["run_id"])
    assert values["status"] == "passed"
    assert [step["file"] for step in values["steps"]] == ["a.sh", "b.sh", "c.sh", "d.sh"]
    assert carried_out(mind) == [1, 2, 2, 2, 3, 4]
    assert await alive(sandboxes, thread=thread_id) == []


async def test_uploaded_archive_is_repaired_and_lies_in_the_sandbox_alone(
    caller: LangGraphClient, repairing: DevServer, mind: Mind, sandboxes: E2BLocal, tmp_path: Path
) -> None:
    """Address, upload, run: the run adopts the sandbox; state holds a digest; the patch fits the original."""
    mind.plans = [plan(ADD, DOUBLE)]
    project = CALC | {"data/large.txt": "x\n" * 2_000_000}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as made:
        for path, text in project.items():
            info = tarfile.TarInfo(f"calc-main/{path}")
            info.size, info.mode = len(text.encode()), 0o755 if path == "calc.sh" else 0o644
            made.addfile(info, io.BytesIO(text.encode()))
    thread_id = await new_thread(caller)
    async with httpx.AsyncClient(base_url=repairing.url, timeout=60) as web:
        address = (await web.post(f"/uploads/{thread_id}")).raise_for_status().json()
        assert (await web.put(f"/uploads/{thread_id}/project", content=b"x")).status_code == 403
        assert (await web.put(address["url"], content=b"no archive")).status_code == 422
        assert await alive(sandboxes, thread=thread_id) == []
        told = (await web.put(address["url"], content=archive.getvalue())).raise_for_status().json()
        assert told["files"] == 3
        (asleep,) = await alive(sandboxes, thread=thread_id)
        assert asleep.state.value == "paused"
        await wait(caller, thread_id, input={"test_command": TEST_COMMAND})
        # A question is open: an upload would take its project away.
        assert (await web.put(address["url"], content=archive.getvalue())).status_code == 409
    (adopted,) = await alive(sandboxes, thread=thread_id)
    assert adopted.sandbox_id == asleep.sandbox_id
    values = await answer(caller, thread_id, APPROVE)
    assert values["status"] == "passed"
    assert values["project"] == {}
    assert len(str(values)) < 20_000
    assert git_applied(CALC, values["diff"], tmp_path)["calc.sh"].count("+") == 2
    assert await alive(sandboxes, thread=thread_id) == []
    # The archive went with the sandbox: said before another one is made.
    again = await caller.runs.wait(
        thread_id, "plan_execute", input={"test_command": "true"}, raise_error=False
    )
    assert "is gone with its sandbox" in again["__error__"]["message"]
    assert await alive(sandboxes, thread=thread_id) == []


async def uploaded(repairing: DevServer, thread_id: str) -> None:
    """Upload the broken project as an archive."""
    data = packed({path: text.encode() for path, text in CALC.items()})
    async with httpx.AsyncClient(base_url=repairing.url, timeout=60) as web:
        address = (await web.post(f"/uploads/{thread_id}")).raise_for_status().json()
        (await web.put(address["url"], content=data)).raise_for_status()


async def test_words_without_a_project_are_answered_in_words(
    caller: LangGraphClient, repairing: DevServer, mind: Mind, sandboxes: E2BLocal
) -> None:
    """A chat front end shows what is needed and where to send it; then the same thread repairs it."""
    mind.plans = [plan(ADD, DOUBLE)]
    thread_id = await new_thread(caller)
    said = {"messages": [{"role": "user", "content": "My tests fail, please help"}]}
    for _ in range(2):
        shown: Any = await caller.runs.wait(thread_id, "plan_execute", input=said)
        assert shown["status"] == "needs_project"
        assert shown["messages"][-1]["type"] == "ai"
        assert "`project`" in shown["messages"][-1]["content"]
        assert f"POST /uploads/{thread_id}" in shown["messages"][-1]["content"]
    assert await alive(sandboxes, thread=thread_id) == []
    await uploaded(repairing, thread_id)
    await wait(caller, thread_id, input={**said, "test_command": TEST_COMMAND})
    values = await answer(caller, thread_id, APPROVE)
    assert values["status"] == "passed"
    # Its archive went with its sandbox.
    shown = await caller.runs.wait(thread_id, "plan_execute", input=said)
    assert "`project`" in shown["messages"][-1]["content"]
    given = {"project": CALC, "test_command": TEST_COMMAND}
    assert (await wait(caller, thread_id, input=given))["plan"]["steps"]
    assert (await answer(caller, thread_id, APPROVE))["status"] == "passed"


async def test_project_beside_an_upload_is_refused(
    caller: LangGraphClient, repairing: DevServer, mind: Mind
) -> None:
    """Neither wins in silence; with an empty `project` the archive is repaired, and later another project."""
    mind.plans = [plan(ADD, DOUBLE)]
    thread_id = await new_thread(caller)
    await uploaded(repairing, thread_id)
    both: Any = {"project": {"other.sh": "x"}, "test_command": TEST_COMMAND}
    for given in (both, {"test_command": TEST_COMMAND}):  # what was refused stays in state
        refused: Any = await caller.runs.wait(thread_id, "plan_execute", input=given, raise_error=False)
        assert "`project` came beside an archive" in refused["__error__"]["message"]
    await wait(caller, thread_id, input={"project": {}, "test_command": TEST_COMMAND})
    values = await answer(caller, thread_id, APPROVE)
    assert (values["status"], values["project"]) == ("passed", {})
    assert "calc.sh" in values["diff"]
    await wait(caller, thread_id, input={"project": FOUR, "test_command": TEST_COMMAND})
    assert (await answer(caller, thread_id, STOP))["status"] == "rejected"


async def test_upload_to_a_busy_thread_is_refused(
    caller: LangGraphClient, repairing: DevServer, mind: Mind
) -> None:
    """409 while a run works; the run is not disturbed."""
    mind.plans = [plan(ADD)]
    thread_id = await new_thread(caller)
    given = {"project": {"a": "x"}, "test_command": "sleep 3; false"}
    run = await caller.runs.create(thread_id, "plan_execute", input=given)
    async with httpx.AsyncClient(base_url=repairing.url) as web:
        url = (await web.post(f"/uploads/{thread_id}")).raise_for_status().json()["url"]
        assert (await web.put(url, content=b"x")).status_code == 409
    await caller.runs.join(thread_id, run["run_id"])
    assert (await answer(caller, thread_id, STOP))["status"] == "rejected"


async def test_copied_thread_asks_again_and_leaves_the_first_alone(
    caller: LangGraphClient, mind: Mind, sandboxes: E2BLocal
) -> None:
    """A copy at the approval works in a sandbox of its own; the original still waits, in its own."""
    mind.plans = [plan(ADD, DOUBLE)]
    thread_id = await start(caller, CALC)
    (mine,) = await alive(sandboxes, thread=thread_id)
    copied = await caller.threads.copy(thread_id)
    other = str((copied or (await caller.threads.search(limit=1))[0])["thread_id"])
    assert (await answer(caller, other, APPROVE))["status"] == "passed"
    assert [s.sandbox_id for s in await alive(sandboxes, thread=thread_id)] == [mine.sandbox_id]
    assert await alive(sandboxes, thread=other) == []
    assert (await answer(caller, thread_id, APPROVE))["status"] == "passed"
