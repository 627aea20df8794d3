"""Acquire and release on the real SDK: found again, never stolen, replaced only when gone."""

import asyncio
from dataclasses import replace

import pytest
from e2b_code_interpreter import AsyncSandbox

from agent.errors import SandboxError, SandboxKeyError, SandboxQuotaError, SandboxUnreachableError
from agent.sandbox.e2b import E2BProvider
from agent.sandbox.live import box
from agent.sandbox.manager import Acquired
from agent.sandbox.owners import Owner
from agent.sandbox.provider import SandboxSpec
from agent.settings import Settings
from server.sandbox.conftest import MakeManager
from support.alive import alive, until_alive
from support.e2b_process import E2BLocal


def hits(sandboxes: E2BLocal) -> int:
    """Return how many requests the first fault has met."""
    return int(sandboxes.faults()[0]["hits"])


async def test_another_process_finds_the_sandbox_and_its_variables(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """A manager that knows nothing connects by the id in state: the same kernel answers (A9, A11)."""
    first = await make_manager().acquire(owner, "")
    assert first.how == "created"
    await box(first.handle).run_code("x = 41", timeout_s=30)
    second = await make_manager().acquire(replace(owner, run="next", task="next"), first.sandbox_id)
    assert (second.how, second.sandbox_id) == ("connected", first.sandbox_id)
    assert (await box(second.handle).run_code("x + 1", timeout_s=30)).results[0].data["text/plain"] == "42"
    assert len(await alive(sandboxes, thread=owner.thread)) == 1
    await make_manager().release(owner, first.sandbox_id)
    assert await alive(sandboxes, thread=owner.thread) == []


async def test_a_whole_run_sends_no_request_more_than_needed(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """An uninterrupted run with N calls: one create, N calls, one kill."""
    sandboxes.inject("delay", "", times=10_000)
    manager = make_manager()
    acquired = await manager.acquire(owner, "")
    for _ in range(3):
        again = await manager.acquire(owner, acquired.sandbox_id)
        await box(again.handle).run_command("true", timeout_s=30)
    await manager.release(owner, acquired.sandbox_id)
    assert hits(sandboxes) == 1 + 3 + 1


async def test_acquisitions_of_one_run_at_once_do_not_disturb_each_other(
    make_manager: MakeManager, owner: Owner
) -> None:
    """Each stands somewhere of its own: one connects to what there is, others find theirs gone."""
    first = await make_manager().acquire(owner, "")
    manager, later = make_manager(), replace(owner, run="later", task="later")
    ids = [first.sandbox_id, "gone-one", "gone-two", "gone-three"]
    acquired = await asyncio.gather(*(manager.acquire(later, one) for one in ids), return_exceptions=True)
    ways = [one.how if isinstance(one, Acquired) else type(one) for one in acquired]
    # A run makes two sandboxes at most, whatever ids it is given.
    assert (ways[0], sorted(map(str, ways[1:]))) == (
        "connected",
        [str(SandboxError), "replaced", "replaced"],
    )
    for one in acquired:
        if isinstance(one, Acquired):
            await manager.release(later, one.sandbox_id)


async def test_every_connect_states_the_lease(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, settings: object
) -> None:
    """A reconnect gives the configured lease, not the service's default of 300 s (A1, A2)."""
    first = await make_manager(lease_s=60).acquire(owner, "")
    await make_manager(lease_s=1800).acquire(replace(owner, run="b"), first.sandbox_id)
    info = await AsyncSandbox.get_info(first.sandbox_id, **sandboxes.options)
    assert 1700 < (info.end_at - info.started_at).total_seconds() < 1900
    # A shorter lease never shortens what is left.
    await make_manager(lease_s=60).acquire(replace(owner, run="c"), first.sandbox_id)
    after = await AsyncSandbox.get_info(first.sandbox_id, **sandboxes.options)
    assert after.end_at == info.end_at


async def test_a_lost_sandbox_is_replaced_once_and_called_lost(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """An id that is gone leads to exactly one new sandbox; nothing more is sent to the old id (A3, A4)."""
    manager = make_manager()
    first = await manager.acquire(owner, "")
    await AsyncSandbox.kill(first.sandbox_id, **sandboxes.options)
    second = await make_manager().acquire(replace(owner, run="next"), first.sandbox_id)
    assert second.how == "replaced"
    sandboxes.inject("delay", first.sandbox_id, times=10_000)
    assert (await box(second.handle).run_command("echo hi", timeout_s=30)).stdout == "hi\n"
    assert hits(sandboxes) == 0
    assert [info.sandbox_id for info in await alive(sandboxes, thread=owner.thread)] == [second.sandbox_id]


@pytest.mark.parametrize("work", ["command", "code", "file"])
async def test_a_sandbox_that_dies_between_two_calls_is_noticed_and_replaced(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, work: str
) -> None:
    """Whatever kind of call finds the sandbox dead, the next acquire replaces it, once (A8)."""
    manager = make_manager()
    first = await manager.acquire(owner, "")
    await AsyncSandbox.kill(first.sandbox_id, **sandboxes.options)
    calls = {
        "command": lambda: box(first.handle).run_command("true", timeout_s=30),
        "code": lambda: box(first.handle).run_code("1", timeout_s=30),
        "file": lambda: box(first.handle).read_file("/etc/hostname"),
    }
    with pytest.raises(SandboxError):
        await calls[work]()
    assert first.handle.gone
    second = await manager.acquire(owner, first.sandbox_id)
    assert (second.how, second.handle.gone) == ("replaced", False)


async def test_a_run_stops_making_sandboxes_that_die_at_once(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """Two creations in a run, then a clear error: no storm (A17)."""
    manager = make_manager()
    sandbox_id = ""
    for _ in range(2):
        acquired = await manager.acquire(owner, sandbox_id)
        sandbox_id = acquired.sandbox_id
        await AsyncSandbox.kill(sandbox_id, **sandboxes.options)
        with pytest.raises(SandboxError):
            await box(acquired.handle).run_command("true", timeout_s=30)
    with pytest.raises(SandboxError, match="2 sandboxes were made for this run"):
        await manager.acquire(owner, sandbox_id)
    assert await alive(sandboxes, thread=owner.thread) == []


async def test_an_unreachable_sandbox_is_tried_again_and_never_replaced(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """Two gateway errors, then an answer: the same sandbox, no create (A5)."""
    first = await make_manager().acquire(owner, "")
    sandboxes.inject("status", "POST .*/connect", status=502, times=2)
    again = await make_manager().acquire(replace(owner, run="next"), first.sandbox_id)
    assert (again.how, again.sandbox_id) == ("connected", first.sandbox_id)
    sandboxes.inject("status", "POST .*/connect", status=503, times=100)
    with pytest.raises(SandboxUnreachableError):
        await make_manager().acquire(replace(owner, run="third"), first.sandbox_id)
    sandboxes.clear_faults()
    later = await make_manager().acquire(replace(owner, run="fourth"), first.sandbox_id)
    assert later.sandbox_id == first.sandbox_id
    assert len(await alive(sandboxes, thread=owner.thread)) == 1


async def test_a_limit_is_waited_for_and_then_named(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """429 twice is waited out; 429 for ever is one readable error (A16)."""
    text = "you have reached the maximum number of concurrent E2B sandboxes (20)"
    sandboxes.inject("status", "POST /v2/sandboxes$", status=429, times=2, message=text)
    assert (await make_manager().acquire(owner, "")).how == "created"
    sandboxes.inject("status", "POST /v2/sandboxes$", status=429, times=100, message=text)
    with pytest.raises(SandboxQuotaError, match=r"concurrent E2B sandboxes \(20\)"):
        await make_manager().acquire(replace(owner, run="b", task="b"), "")


async def test_a_create_whose_answer_is_lost_makes_one_sandbox(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """The request is sent again with the same key: the service returns the one it made (decision 5)."""
    sandboxes.inject("lost", "POST /v2/sandboxes$")
    acquired = await make_manager().acquire(owner, "")
    assert [info.sandbox_id for info in await alive(sandboxes, thread=owner.thread)] == [acquired.sandbox_id]


async def test_a_task_tried_again_gets_the_sandbox_of_its_first_try(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """A node that runs twice from one checkpoint attaches to what its first run made (A20)."""
    first = await make_manager().acquire(owner, "")
    second = await make_manager().acquire(owner, "")
    assert second.sandbox_id == first.sandbox_id
    assert len(await alive(sandboxes, thread=owner.thread)) == 1


async def test_a_sandbox_that_never_reached_state_is_adopted(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """A run that resumes a turn, or is begun again, looks for its sandbox; another turn does not."""
    first = await make_manager().acquire(owner, "")
    resumed = replace(owner, run="resumed", task=f"resumed-{owner.task}", turn=owner.run)
    found = await make_manager().acquire(resumed, "", again=True)
    assert (found.how, found.sandbox_id) == ("connected", first.sandbox_id)
    retried = replace(owner, task=f"retried-{owner.task}", retried=True)
    assert (await make_manager().acquire(retried, "")).sandbox_id == first.sandbox_id
    next_turn = replace(owner, run="next", task=f"next-{owner.task}")
    assert (await make_manager().acquire(next_turn, "", again=True)).how == "created"


async def test_a_taken_back_runs_clean_up_never_meets_the_next_run(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """While what a run made is being ended, a run of the same turn makes its own instead of adopting it."""
    manager = make_manager()
    first = await manager.acquire(owner, "")
    sandboxes.inject("delay", "DELETE /sandboxes/", seconds=0.5)
    ending = asyncio.create_task(manager.undo(owner.run))
    await asyncio.sleep(0)
    again = await manager.acquire(
        replace(owner, run="b", task=f"b-{owner.task}", turn=owner.run), "", again=True
    )
    assert (again.how, again.sandbox_id == first.sandbox_id) == ("created", False)
    await ending
    assert [info.sandbox_id for info in await alive(sandboxes, thread=owner.thread)] == [again.sandbox_id]


async def test_parallel_calls_share_one_creation(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """Three calls of one message make one sandbox (A60)."""
    manager = make_manager(start="lazy")
    tasks = [replace(owner, task=f"{owner.task}-{number}") for number in range(3)]
    found = await asyncio.gather(*(manager.acquire(task, "", again=True) for task in tasks))
    assert len({acquired.sandbox_id for acquired in found}) == 1
    assert len(await alive(sandboxes, thread=owner.thread)) == 1


async def test_a_cancelled_creation_leaves_no_sandbox(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """The create goes on behind the cancel, and what it made is ended."""
    sandboxes.inject("late", "POST /v2/sandboxes$", seconds=0.3)
    sandboxes.inject("delay", "DELETE /sandboxes/")
    task = asyncio.create_task(make_manager().acquire(owner, ""))
    made = await until_alive(sandboxes, 1, thread=owner.thread)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_alive(sandboxes, 0, thread=owner.thread)
    assert len(made) == 1


@pytest.mark.parametrize("field", ["thread", "graph"])
async def test_anothers_sandbox_is_neither_connected_nor_killed(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, field: str
) -> None:
    """An id that came from another thread is left alone, and its absence is no loss (decision 2)."""
    manager = make_manager()
    theirs = await manager.acquire(owner, "")
    mine = replace(owner, run="mine", task=f"mine-{owner.task}", **{field: "another"})
    sandboxes.inject("delay", f"(POST|DELETE) /.*{theirs.sandbox_id}", times=1_000)
    found = await manager.acquire(mine, theirs.sandbox_id)
    assert found.how == "created"
    assert found.sandbox_id != theirs.sandbox_id
    await manager.release(replace(mine, run="third"), theirs.sandbox_id)
    assert hits(sandboxes) == 0
    assert [info.sandbox_id for info in await alive(sandboxes, run=owner.run)] == [theirs.sandbox_id]


async def test_a_kill_that_fails_is_tried_again_and_never_fails_the_run(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, caplog: pytest.LogCaptureFixture
) -> None:
    """Twice unreachable: killed in the end. For ever: logged with the command that ends it (A12)."""
    manager = make_manager()
    first = await manager.acquire(owner, "")
    sandboxes.inject("status", "DELETE /sandboxes/", status=503, times=2)
    assert await manager.release(owner, first.sandbox_id) == ""
    assert await alive(sandboxes, thread=owner.thread) == []
    second = await manager.acquire(replace(owner, run="b", task="b"), "")
    sandboxes.inject("status", "DELETE /sandboxes/", status=503, times=1_000)
    assert await manager.release(replace(owner, run="b", task="b"), second.sandbox_id) == ""
    assert f"e2b sandbox kill {second.sandbox_id}" in caplog.text


async def test_keep_thread_pauses_and_the_next_turn_finds_everything(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """keep=thread: paused at the end, the same sandbox with its variables in the next turn (A11)."""
    manager = make_manager(keep="thread")
    first = await manager.acquire(owner, "")
    await box(first.handle).run_code("x = 'kept'", timeout_s=30)
    assert await manager.release(owner, first.sandbox_id) == first.sandbox_id
    (info,) = await alive(sandboxes, thread=owner.thread)
    assert info.state.value == "paused"
    second = await manager.acquire(replace(owner, run="turn-2", task="turn-2"), first.sandbox_id)
    assert second.how == "connected"
    assert (await box(second.handle).run_code("x", timeout_s=30)).results[0].data["text/plain"] == "kept"


async def test_rest_pauses_and_the_answer_wakes(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """When a human is asked the sandbox is paused at once; failing to pause raises nothing (decision 7)."""
    manager = make_manager()
    acquired = await manager.acquire(owner, "")
    await manager.rest(owner.run)
    (info,) = await alive(sandboxes, thread=owner.thread)
    assert info.state.value == "paused"
    woken = await manager.acquire(replace(owner, run="resumed"), acquired.sandbox_id)
    assert woken.how == "connected"
    sandboxes.inject("status", "POST .*/pause", status=500, times=100)
    await manager.rest("resumed")
    await manager.rest("never seen")


async def test_undo_ends_only_what_the_run_made(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """A rolled-back run's own sandbox is ended; one it found in state is kept, since state names it again."""
    manager = make_manager(keep="thread")
    first = await manager.acquire(owner, "")
    await manager.release(owner, first.sandbox_id)
    await manager.acquire(replace(owner, run="second"), first.sandbox_id)
    await manager.undo("second")
    assert len(await alive(sandboxes, thread=owner.thread)) == 1
    made = await manager.acquire(replace(owner, run="third", task="third", thread="other"), "")
    await manager.undo("third")
    assert made.sandbox_id not in {info.sandbox_id for info in await alive(sandboxes, thread="other")}


async def test_work_renews_a_lease_that_would_not_last(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """Before a command whose limit outlasts the lease, the lease is lengthened beyond it (decision 6)."""
    acquired = await make_manager(lease_s=30).acquire(owner, "")
    await box(acquired.handle).run_command("true", timeout_s=600)
    info = await AsyncSandbox.get_info(acquired.sandbox_id, **sandboxes.options)
    assert (info.end_at - info.started_at).total_seconds() >= 600


async def test_a_lease_that_runs_out_pauses_also_after_a_connect(
    settings: Settings, owner: Owner, sandboxes: E2BLocal
) -> None:
    """What was said at the creation holds after a connect: paused, not killed (A6)."""
    provider = E2BProvider(settings)
    spec = SandboxSpec("code-interpreter-v1", 60, owner.metadata("manager-tests"), f"a6-{owner.task}")
    made = await provider.create(spec)
    connected = await provider.connect(made.sandbox_id, 60)
    await connected.set_timeout(1)
    async with asyncio.timeout(20):
        while (await provider.inspect(made.sandbox_id)).state == "running":  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.05)
    assert (await provider.inspect(made.sandbox_id)).state == "paused"
    assert await provider.kill(made.sandbox_id)


async def test_a_refused_key_is_named(make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal) -> None:
    """401 is not retried: the variable to look at is named."""
    sandboxes.inject("status", "POST /v2/sandboxes$", status=401, times=100)
    with pytest.raises(SandboxKeyError, match="E2B_API_KEY"):
        await make_manager().acquire(owner, "")
    assert hits(sandboxes) == 1
