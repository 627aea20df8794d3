"""Crashes, losses, cancels and forks: finished work is not repeated, and nothing is made up."""

import asyncio
import uuid

import pytest
from e2b_code_interpreter import AsyncSandbox
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import Command

from agent.errors import ModelError, SandboxError
from server.repair.conftest import MakeRepair
from support.alive import alive, until_alive
from support.e2b_process import E2BLocal
from support.openai_api.errors import ApiError
from support.played_model import call
from support.repairs import APPROVE, Repair, plan, run_the_change

COUNTED = {
    "a.sh": "echo 0\n",
    "b.sh": "echo 0\n",
    "tests/run.sh": "[ $(bash a.sh)$(bash b.sh) = 12 ]\n",
}
"""A project whose steps can be told apart, and counted where they ran."""
FIRST = ("a.sh", "echo echo 1 > a.sh")
SECOND = ("b.sh", "echo echo 2 > b.sh")


async def in_the_sandbox(sandboxes: E2BLocal, repair: Repair, command: str) -> str:
    """Run a command in the thread's sandbox from outside."""
    (one,) = await alive(sandboxes, thread=repair.thread_id)
    sandbox = await AsyncSandbox.connect(one.sandbox_id, timeout=60, **sandboxes.options)
    return (await sandbox.commands.run(command)).stdout


async def in_first(repair: Repair) -> int:
    """Return how often the first step was given to the model."""
    return [told.splitlines()[0] for told in repair.mind.told].count("Step 1 of 2")


async def test_step_that_failed_starts_anew_from_the_files_before_it(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """The failure is the run's own (A57); going on repeats step 2 alone, and not on top of its leftovers."""
    repair = make_repair(plan(FIRST, SECOND))
    looked: list[str] = []

    def fail(request: str, since: list[BaseMessage]) -> AIMessage:
        if request.startswith("Step 2") and since:
            raise ApiError("the provider will not answer")
        return run_the_change(request, since)

    def look(request: str, since: list[BaseMessage]) -> AIMessage:
        if not since:
            return call("run_command", command="cat b.sh")
        if len(since) == 2:
            looked.append(str(since[-1].text))
            return run_the_change(request, [])
        return AIMessage("done")

    repair.mind.act = fail
    await repair.start(COUNTED)
    with pytest.raises(ModelError, match="the provider will not answer"):
        await repair.answer(APPROVE)
    assert ((await repair.values())["step"], (await repair.values())["status"]) == (1, None)
    assert await in_the_sandbox(sandboxes, repair, "cat ~/project/b.sh") == "echo 2\n"
    repair.mind.act = look
    state = await repair.run(None)
    assert "<stdout>\necho 0\n</stdout>" in looked[0]
    assert (state["status"], await in_first(repair)) == ("passed", 1)


async def test_finished_step_is_not_repeated_after_a_crash(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """The run breaks off between a step's end and its checkpoint: the sandbox knows that it is done (A20)."""
    repair = make_repair(plan(FIRST, SECOND))

    def break_off(request: str, since: list[BaseMessage]) -> AIMessage:
        if since and request.startswith("Step 1"):
            # What comes next is the note that the step is done, a file; the first command after it fails.
            sandboxes.inject("status", "process.Process/Start", status=503, times=100)
        return run_the_change(request, since)

    repair.mind.act = break_off
    await repair.start(COUNTED)
    with pytest.raises(SandboxError):
        await repair.answer(APPROVE)
    sandboxes.clear_faults()
    assert (await repair.values())["step"] == 0
    other = make_repair(plan(FIRST, SECOND))  # as another process would have it
    other.thread_id = repair.thread_id
    state = await other.run(None)
    assert state["status"] == "passed"
    assert await in_first(repair) == 1
    assert state["steps"][0]["report"] == "Done: exit_code: 0"
    assert "+echo 1" in state["steps"][0]["diff"]


@pytest.mark.parametrize("same_run", [True, False])
async def test_bootstrap_that_is_visited_again_prepares_once(
    make_repair: MakeRepair, sandboxes: E2BLocal, same_run: bool
) -> None:
    """A process goes down in the first test run. The same run finds its sandbox prepared (A20, A41).

    A run that goes on later makes its own: nothing in state names the other, which is left to its lease.
    """
    repair = make_repair(plan(FIRST, SECOND))
    given = {
        "project": COUNTED,
        "test_command": "echo >> ../tests-begun; sleep 1; bash tests/run.sh",
        "setup_command": "echo ran >> ../setups",
    }
    run_id = uuid.uuid4()
    running = asyncio.create_task(repair.run(given, run_id=run_id))
    await until_alive(sandboxes, 1, thread=repair.thread_id)
    await in_the_sandbox(sandboxes, repair, "until test -e tests-begun; do sleep 0.01; done")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    other = make_repair(plan(FIRST, SECOND))
    other.thread_id = repair.thread_id
    state = await other.run(None, run_id=run_id if same_run else uuid.uuid4())
    assert len(await other.questions()) == 1
    assert len(await alive(sandboxes, thread=repair.thread_id)) == (1 if same_run else 2)
    sandbox = await AsyncSandbox.connect(state["sandbox_id"], timeout=60, **sandboxes.options)
    assert await sandbox.files.read("setups") == "ran\n"


async def test_lost_sandbox_is_prepared_again_with_the_steps_done_so_far(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """Killed between two tries: the next plan sees what the first did, and the set-up runs in the new one."""
    repair = make_repair(plan(FIRST), plan(SECOND))
    await repair.start(COUNTED, setup_command="echo made > made")
    await repair.answer(APPROVE)
    (one,) = await alive(sandboxes, thread=repair.thread_id)
    await AsyncSandbox.kill(one.sandbox_id, **sandboxes.options)
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    assert "+echo 1" in state["diff"]
    assert "made" not in state["diff"]
    assert [e["event"] for e in repair.events if e["type"] == "sandbox"].count("replaced") == 1
    assert await alive(sandboxes, thread=repair.thread_id) == []


async def test_sandbox_lost_in_a_step_is_made_again_and_the_step_repeated(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """It dies under the second step: the first is not carried out again."""
    repair = make_repair(plan(FIRST, SECOND))
    died: list[str] = []

    def act(request: str, since: list[BaseMessage]) -> AIMessage:
        if request.startswith("Step 2") and not since and not died:
            died.append(request)
            return call("run_command", command="sleep 30")
        return run_the_change(request, since)

    repair.mind.act = act
    await repair.start(COUNTED)
    (one,) = await alive(sandboxes, thread=repair.thread_id)

    async def kill_when_it_comes() -> None:
        while not died:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await AsyncSandbox.kill(one.sandbox_id, **sandboxes.options)

    killing = asyncio.create_task(kill_when_it_comes())
    state = await repair.answer(APPROVE)
    await killing
    assert state["status"] == "passed"
    assert [told.splitlines()[0] for told in repair.mind.told].count("Step 1 of 2") == 1


async def test_sandbox_that_fell_back_is_noticed_and_put_right(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """An older state of the disk comes back under the same id: told, not trusted (A7)."""
    repair = make_repair(plan(FIRST), plan(SECOND))
    await repair.start(COUNTED)
    meta = "~/.repair/marker"
    older = await in_the_sandbox(sandboxes, repair, f"cat {meta}")
    await repair.answer(APPROVE)
    back = f"cd ~/project; echo echo 0 > a.sh; echo '{older}' > {meta}"
    await in_the_sandbox(sandboxes, repair, back)
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    assert "it fell back to an older state" in state["warnings"][0]
    assert "rolled_back" in [e["event"] for e in repair.events if e["type"] == "sandbox"]
    assert "+echo 1" in state["diff"]


async def test_sandbox_without_a_marker_is_prepared_anew(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """It answers to the id, and bears no mark of this run's preparation: prepared again, and told (A7)."""
    repair = make_repair(plan(FIRST, SECOND))
    await repair.start(COUNTED, setup_command="echo ran >> ../setups")
    await in_the_sandbox(sandboxes, repair, "rm -rf ~/.repair ~/project")
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    assert "it fell back to an older state" in state["warnings"][0]


async def test_cancel_reaches_the_sandbox_and_the_run_can_go_on(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """No further command runs after a cancel in mid-step (A56); going on repeats that step alone."""
    slow = (
        "b.sh",
        "for i in $(seq 300); do echo $i >> ~/.ticks_history; sleep 0.1; done; echo echo 2 > b.sh",
    )
    repair = make_repair(plan(FIRST, slow))
    await repair.start(COUNTED)
    running = asyncio.create_task(repair.answer(APPROVE))
    await in_the_sandbox(sandboxes, repair, "until test -s ~/.ticks_history; do sleep 0.01; done")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    count = "sleep 2; wc -l < ~/.ticks_history; sleep 1; wc -l < ~/.ticks_history"
    before, after = (await in_the_sandbox(sandboxes, repair, count)).split()
    assert before == after
    assert "b.sh" not in (await repair.values())["changes"]
    repair.mind.act = lambda request, since: run_the_change(request.replace("seq 300", "seq 1"), since)
    state = await repair.run(None)
    assert state["status"] == "passed"
    assert await in_first(repair) == 1


async def test_fork_at_the_approval_asks_again_in_a_sandbox_of_its_own(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """After the run ended: the question anew, the files as they were sent, the end as it was on record."""
    repair = make_repair(plan(FIRST), plan(SECOND))
    await repair.start(COUNTED)
    await repair.answer(APPROVE)
    ended = await repair.answer(APPROVE)
    assert ended["status"] == "passed"
    history = [snapshot async for snapshot in repair.graph.aget_state_history(repair.config)]
    end = history[0].config
    asked = [snapshot for snapshot in history if snapshot.next == ("approve",)][-1]
    fork = await repair.graph.aupdate_state(asked.config, {"goal": "another way"}, as_node="plan")
    repair.mind.plans = [plan(SECOND)]
    state = await repair.run(None, **{k: v for k, v in fork.items() if k == "configurable"})
    (question,) = await repair.questions()
    assert question.value["action_requests"][0]["args"] == plan(FIRST)
    state = await repair.run(Command(resume={question.id: APPROVE}))
    assert (state["status"], state["iteration"]) == (None, 2)
    assert set(state["changes"]) == {"a.sh"}
    assert state["tests_after"]["exit_code"] == 1
    before = (await repair.graph.aget_state(end)).values
    assert (before["status"], before["diff"]) == ("passed", ended["diff"])
    (one,) = await alive(sandboxes, thread=repair.thread_id)
    assert one.sandbox_id == state["sandbox_id"]
    await repair.answer(APPROVE)
    assert await alive(sandboxes, thread=repair.thread_id) == []


async def test_two_threads_at_once_do_not_meet(make_repair: MakeRepair, sandboxes: E2BLocal) -> None:
    """Each has its own sandbox, files and question."""
    one, other = make_repair(plan(FIRST, SECOND)), make_repair(plan(FIRST, SECOND))
    await asyncio.gather(one.start(COUNTED), other.start(COUNTED))
    ids = {found.sandbox_id for r in (one, other) for found in await alive(sandboxes, thread=r.thread_id)}
    assert len(ids) == 2
    states = await asyncio.gather(one.answer(APPROVE), other.answer(APPROVE))
    assert [state["status"] for state in states] == ["passed", "passed"]


async def test_unreachable_sandbox_is_an_error_and_never_replaced(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """It may hold the only copy: the run fails with the reason, and goes on when it answers again."""
    repair = make_repair(plan(FIRST, SECOND))
    await repair.start(COUNTED)
    sandboxes.inject("status", "POST .*/connect", status=503, times=100)
    with pytest.raises(SandboxError):
        await repair.answer(APPROVE)
    sandboxes.clear_faults()
    assert (await repair.run(None))["status"] == "passed"
