"""The sandbox that a patch is verified in: set up like the first one, ended whatever happens."""

import asyncio
from typing import Any

import pytest
from e2b_code_interpreter import AsyncSandbox

from agent.errors import InputError, SandboxError, SandboxQuotaError
from agent.sandbox.owners import USE, VERIFY
from agent.settings import Settings
from server.repair.conftest import MakeRepair
from server.repair.test_archives import tar, uploaded
from support.alive import alive, until_alive
from support.e2b_process import E2BLocal
from support.repairs import ADD, APPROVE, DOUBLE, TEST_COMMAND, Repair, plan

ONE = {"a.sh": "echo 0\n", "tests/run.sh": "[ $(bash a.sh) = 1 ]\n"}
MEND = ("a.sh", "echo echo 1 > a.sh")
HANGS_IN_THE_SUN = '[ "$WEATHER" = sun ] && sleep 60; bash tests/run.sh'


async def verifying(sandboxes: E2BLocal, repair: Repair, count: int = 1) -> list[str]:
    """Wait until so many sandboxes are there to verify in, and return their ids."""
    marks = {"thread": repair.thread_id, USE: VERIFY}
    return [info.sandbox_id for info in await until_alive(sandboxes, count, **marks)]


async def hanging(make_repair: MakeRepair, monkeypatch: pytest.MonkeyPatch) -> tuple[Repair, Any]:
    """Return a repair, and its run in which the verification hangs until the weather changes."""
    repair = make_repair(plan(MEND))
    await repair.start(ONE, test_command=HANGS_IN_THE_SUN)
    monkeypatch.setenv("WEATHER", "sun")
    return repair, asyncio.create_task(repair.answer(APPROVE))


async def test_set_up_runs_on_what_was_sent_and_the_patch_comes_after(make_repair: MakeRepair) -> None:
    """What an agent wrote does not run while a set-up command has the internet."""
    repair = make_repair(plan(MEND))
    await repair.start(ONE, setup_command="cp a.sh ../seen", test_command="cat ../seen; bash tests/run.sh")
    state = await repair.answer(APPROVE)
    assert (state["status"], state["tests_after"]["output"]) == ("passed", "echo 0\n")
    assert state["warnings"] == []


async def test_set_up_runs_again_where_the_tests_need_what_it_builds(make_repair: MakeRepair) -> None:
    """It builds something of the changed files: red with the old build, green with the new one, and told."""
    repair = make_repair(plan(("a.sh", "echo echo 1 > a.sh; mkdir -p out; cp a.sh out/")))
    built = {"a.sh": "echo 0\n", "tests/run.sh": "[ $(bash out/a.sh) = 1 ]\n"}
    await repair.start(built, setup_command="mkdir -p out; cp a.sh out/")
    state = await repair.answer(APPROVE)
    assert (state["status"], set(state["changes"])) == ("passed", {"a.sh"})
    assert state["warnings"] == [
        "The tests pass only after the set-up command has run again, on the changed files."
    ]


async def test_tests_changed_by_the_first_run_turn_no_second_one_green(make_repair: MakeRepair) -> None:
    """The code under test rewrites a test and fails; the run after the second set-up would pass."""
    repair = make_repair(plan(("a.sh", "echo 'echo exit 0 > tests/run.sh; echo 0' > a.sh")))
    await repair.start(ONE, setup_command="true", limits={"tries": 1})
    state = await repair.answer(APPROVE)
    assert (state["status"], state["tests_after"]["exit_code"]) == ("failed", 0)
    assert "tests/run.sh changed while the tests ran" in state["summary"]


async def test_set_up_that_fails_a_second_time_is_no_failing_test(
    make_repair: MakeRepair, sandboxes: E2BLocal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that is down: the run ends as that, with the patch, and says that it was not verified."""
    repair = make_repair(plan(MEND))
    monkeypatch.setenv("WEATHER", "sun")
    await repair.start(ONE, setup_command='[ "$WEATHER" = sun ] || { echo no index; exit 3; }')
    monkeypatch.setenv("WEATHER", "rain")
    state = await repair.answer(APPROVE)
    assert (state["status"], state["tests_after"]) == ("setup_failed", None)
    assert "no index" in state["summary"]
    assert "What was changed was not verified." in state["summary"]
    assert "+echo 1" in state["diff"]
    assert await alive(sandboxes, thread=repair.thread_id) == []


async def test_lost_sandbox_is_made_again_once(
    make_repair: MakeRepair, sandboxes: E2BLocal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies under the tests: another one serves as well, and nobody is told of a loss."""
    repair, running = await hanging(make_repair, monkeypatch)
    (first,) = await verifying(sandboxes, repair)
    monkeypatch.setenv("WEATHER", "rain")
    await AsyncSandbox.kill(first, **sandboxes.options)
    state = await running
    assert (state["status"], state["warnings"]) == ("passed", [])
    assert [e["event"] for e in repair.events if e["type"] == "sandbox"] == ["created", "connected"]


async def test_two_lost_sandboxes_are_one_clear_error(
    make_repair: MakeRepair, sandboxes: E2BLocal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No third one; the patch is on record, and going on verifies it."""
    repair, running = await hanging(make_repair, monkeypatch)
    for _ in range(2):
        (found,) = await verifying(sandboxes, repair)
        await AsyncSandbox.kill(found, **sandboxes.options)
    with pytest.raises(SandboxError, match=r"could not be verified.*2 sandboxes were lost"):
        await running
    assert await verifying(sandboxes, repair, 0) == []
    assert "+echo 1" in (await repair.values())["diff"]
    monkeypatch.setenv("WEATHER", "rain")
    assert (await repair.run(None))["status"] == "passed"


async def test_cancelled_verification_leaves_no_sandbox_behind(
    make_repair: MakeRepair, sandboxes: E2BLocal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread keeps its own, and the run can go on."""
    repair, running = await hanging(make_repair, monkeypatch)
    await verifying(sandboxes, repair)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await verifying(sandboxes, repair, 0)
    assert len(await alive(sandboxes, thread=repair.thread_id)) == 1
    monkeypatch.setenv("WEATHER", "rain")
    assert (await repair.run(None))["status"] == "passed"


async def test_account_without_room_says_that_the_patch_is_not_verified(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """Others use all of it, for longer than is waited."""
    repair = make_repair(plan(MEND))
    await repair.start(ONE)
    text = "you have reached the maximum number of concurrent E2B sandboxes (20)"
    sandboxes.inject("status", "POST /v2/sandboxes$", status=429, times=100, message=text)
    with pytest.raises(SandboxQuotaError, match=r"could not be verified.* of its own.*sandboxes \(20\)"):
        await repair.answer(APPROVE)
    sandboxes.clear_faults()
    assert (await repair.run(None))["status"] == "passed"


@pytest.mark.parametrize("harm", ["rm .repair/archive", "echo other > .repair/archive"])
async def test_archive_that_a_step_changed_is_not_verified_on(
    make_repair: MakeRepair, settings: Settings, sandboxes: E2BLocal, harm: str
) -> None:
    """The copy in the sandbox is the only one: it counts if its digest is the one on record."""
    repair = make_repair(plan(ADD, ("calc.sh", f"cd; {harm}"), DOUBLE))
    await uploaded(settings, repair, tar())
    await repair.run({"test_command": TEST_COMMAND})
    with pytest.raises((InputError, SandboxError), match="start anew"):
        await repair.answer(APPROVE)
    assert await verifying(sandboxes, repair, 0) == []
