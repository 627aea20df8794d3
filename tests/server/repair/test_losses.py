"""Sandboxes that die: few are made in their place, with a pause between, and the error says why."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from e2b_code_interpreter import AsyncSandbox
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver

from agent.errors import SandboxError
from agent.graphs.plan_execute import repair_graph
from agent.repair.lasting import MAX_LOSSES
from agent.settings import Settings
from agent.wiring import sandbox_manager
from server.repair.conftest import MakeRepair
from support.alive import alive
from support.e2b_process import E2BLocal
from support.repairs import ADD, APPROVE, DOUBLE, Mind, Repair, plan, run_the_change

CREATE = "POST /v2/sandboxes$"


@asynccontextmanager
async def dying(
    sandboxes: E2BLocal, repair: Repair, once_it_has: str = ""
) -> AsyncIterator[dict[str, float]]:
    """Kill each sandbox of the thread, when it has the file; yields when each was seen first, by id."""
    seen: dict[str, float] = {}

    async def kill() -> None:
        while True:
            for one in await alive(sandboxes, thread=repair.thread_id):
                seen.setdefault(one.sandbox_id, time.monotonic())
                sandbox = await AsyncSandbox.connect(one.sandbox_id, timeout=60, **sandboxes.options)
                if once_it_has and not await sandbox.files.exists(once_it_has):
                    continue
                await AsyncSandbox.kill(one.sandbox_id, **sandboxes.options)
            await asyncio.sleep(0.02)

    killing = asyncio.create_task(kill())
    try:
        yield seen
    finally:
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)


@pytest.mark.parametrize(
    ("when", "more"),
    [
        ("upload", {}),
        ("set-up", {"setup_command": "touch ~/here; sleep 60"}),
        ("first tests", {"test_command": "touch ~/here; sleep 60"}),
    ],
)
async def test_sandbox_that_dies_in_each_bootstrap_is_replaced_once_then_the_run_fails(
    make_repair: MakeRepair, sandboxes: E2BLocal, when: str, more: dict[str, str]
) -> None:
    """Two creations in the run, a pause between, one clear error, and nothing left alive."""
    repair = make_repair(plan(ADD))
    sandboxes.inject("delay", CREATE, times=1_000)
    if when == "upload":
        sandboxes.inject("delay", "POST .*/files", seconds=1, times=1_000)
    async with dying(sandboxes, repair, "here" if more else "") as seen:
        with pytest.raises(SandboxError, match="2 sandboxes were made for this run and each was lost"):
            await repair.start(**more)
    assert sandboxes.faults()[0]["hits"] == 2
    first, second = seen.values()
    assert second - first >= 0.75
    assert await alive(sandboxes, thread=repair.thread_id) == []


async def test_run_that_failed_for_lost_sandboxes_can_go_on_later(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """The count is the run's: a new run of the thread gets its own two."""
    repair = make_repair(plan(ADD, DOUBLE))
    async with dying(sandboxes, repair):
        with pytest.raises(SandboxError, match="2 sandboxes were made"):
            await repair.start()
    await repair.run(None)
    assert (await repair.answer(APPROVE))["status"] == "passed"


async def test_sandbox_called_gone_by_its_traffic_and_alive_by_the_service_is_given_up(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """No creation bounds this: the visit itself has an end, and the sandbox, which lives, is not replaced."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    sandboxes.inject("delay", CREATE, times=1_000)
    text = "the sandbox was not found"
    sandboxes.inject("status", "(GET|POST) .*/files", status=502, message=text, times=1_000)
    with pytest.raises(SandboxError, match=f"lost {MAX_LOSSES + 1} times in one step"):
        await repair.answer(APPROVE)
    assert [fault["hits"] for fault in sandboxes.faults()] == [0, MAX_LOSSES + 1]
    sandboxes.clear_faults()
    assert (await repair.run(None))["status"] == "passed"


async def test_exchange_of_a_kept_sandbox_does_not_forget_what_the_run_made(
    settings: Settings, mind: Mind, sandboxes: E2BLocal
) -> None:
    """A thread's kept sandbox is ended for one whose set-up has the internet; two creations are still all."""
    online = settings.model_copy(update={"sandbox_internet": "setup"})
    mind.plans = [plan(ADD, DOUBLE)]
    graph = repair_graph(online, sandbox_manager(online), InMemorySaver())
    repair = Repair(graph, mind, keep="thread")
    await repair.start()
    assert (await repair.answer(APPROVE))["status"] == "passed"
    sandboxes.inject("delay", CREATE, times=1_000)
    async with dying(sandboxes, repair, "here"):
        with pytest.raises(SandboxError, match="2 sandboxes were made"):
            await repair.start(setup_command="touch ~/here; sleep 60")
    assert [fault["hits"] for fault in sandboxes.faults()] == [2]


async def test_cancelled_repair_leaves_a_sandbox_that_pauses_within_its_lease(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """With a lease of 30 s and short limits: whatever was under way, it lives 30 s more at most."""
    repair = make_repair(plan(ADD, DOUBLE), lease_s=30, command_timeout_s=10)
    begun = asyncio.Event()

    def act(request: str, since: list[BaseMessage]) -> AIMessage:
        if since:
            begun.set()
        return run_the_change(request, since)

    repair.mind.act = act
    await repair.start(setup_command="true")
    running = asyncio.create_task(repair.answer(APPROVE))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    left = await alive(sandboxes, thread=repair.thread_id)
    assert left
    for one in left:
        assert (one.end_at - datetime.now(UTC)).total_seconds() <= 30


@pytest.mark.parametrize("status", [502, 503])
@pytest.mark.parametrize("match", ["POST .*/files", "GET .*/files", "process.Process/Start"])
async def test_one_gateway_error_in_the_bootstrap_costs_nothing(
    make_repair: MakeRepair, sandboxes: E2BLocal, match: str, status: int
) -> None:
    """The upload, a read and a script are sent again: the same sandbox, and the repair goes through."""
    repair = make_repair(plan(ADD, DOUBLE))
    sandboxes.inject("status", match, status=status)
    sandboxes.inject("delay", CREATE, times=1_000)
    await repair.start()
    assert [fault["hits"] for fault in sandboxes.faults()] == [1, 1]
    assert (await repair.answer(APPROVE))["status"] == "passed"
