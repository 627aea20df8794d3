"""A sandbox beside the thread's own: used once, ended whatever happens, and taken for no other."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from e2b_code_interpreter import AsyncSandbox

from agent.errors import SandboxError, SandboxQuotaError
from agent.sandbox.live import box
from agent.sandbox.owners import USE, VERIFY, Owner
from agent.settings import Settings
from agent.wiring import sandbox_manager
from server.sandbox.conftest import MakeManager
from support.alive import alive, until_alive
from support.e2b_process import E2BLocal, isolation_arguments, start_e2b_local


async def test_fresh_sandbox_ends_with_its_block(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """After use and after a failure in it; the thread's own stays, and neither is the other."""
    manager = make_manager()
    own = await manager.acquire(owner, "")
    async with manager.fresh(owner, own.sandbox_id) as made:
        assert made.sandbox_id != own.sandbox_id
        assert (await box(made.handle).run_command("echo hi", timeout_s=30)).stdout == "hi\n"
        assert len(await alive(sandboxes, thread=owner.thread)) == 2
    with pytest.raises(ZeroDivisionError):
        async with manager.fresh(owner, own.sandbox_id):
            raise ZeroDivisionError
    assert [info.sandbox_id for info in await alive(sandboxes, thread=owner.thread)] == [own.sandbox_id]
    assert (await manager.acquire(owner, own.sandbox_id)).how == "cached"


async def test_fresh_sandbox_that_nobody_ends_is_killed_by_its_lease(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """Its process may die: then the service ends it, and a sweep knows it by its metadata."""
    async with make_manager(lease_s=60).fresh(owner, "") as made:
        info = await AsyncSandbox.get_info(made.sandbox_id, **sandboxes.options)
        assert info.lifecycle is not None
        assert info.lifecycle["on_timeout"] == "kill"
        assert 50 < (info.end_at - info.started_at).total_seconds() < 70
        assert info.metadata.items() >= {"thread": owner.thread, "run": owner.run, USE: VERIFY}.items()
        assert info.metadata["deployment"] == "manager-tests"


async def test_fresh_sandbox_of_a_cancelled_run_is_ended(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """Cancelled while it is made, while it is used, and once more while it is ended."""
    manager, used = make_manager(), asyncio.Event()

    async def work() -> None:
        async with manager.fresh(owner, "") as made:
            used.set()
            await box(made.handle).run_command("sleep 60", timeout_s=90)

    sandboxes.inject("late", "POST /v2/sandboxes$", seconds=0.3)
    making = asyncio.create_task(work())
    await until_alive(sandboxes, 1, thread=owner.thread)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    await until_alive(sandboxes, 0, thread=owner.thread)
    working = asyncio.create_task(work())
    await used.wait()
    sandboxes.inject("delay", "DELETE /sandboxes/", seconds=0.5)
    working.cancel()
    await asyncio.wait([working], timeout=0.2)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    await until_alive(sandboxes, 0, thread=owner.thread)


async def test_fresh_sandbox_is_never_the_threads_own(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """No run adopts it, and its id in state leads neither into it nor to its end."""
    manager = make_manager()
    async with manager.fresh(owner, "") as made:
        for lost in (
            replace(owner, task="a", retried=True),
            replace(owner, task="b", run="b", turn=owner.run),
        ):
            found = await make_manager().acquire(lost, "", again=True)
            assert found.how == "created"
            await make_manager().release(replace(lost, run="c"), found.sandbox_id)
        named = await make_manager().acquire(replace(owner, run="d", task="d"), made.sandbox_id)
        assert (named.how, named.sandbox_id == made.sandbox_id) == ("created", False)
        await make_manager().release(replace(owner, run="e"), made.sandbox_id)
        await manager.rest(owner.run)
        assert (await AsyncSandbox.get_info(made.sandbox_id, **sandboxes.options)).state.value == "running"


async def test_every_fresh_sandbox_is_another(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """Also for a task that is tried again: what its first try made has been worked in."""
    async with make_manager().fresh(owner, "") as one, make_manager().fresh(owner, "") as other:
        assert one.sandbox_id != other.sandbox_id
    sandboxes.inject("lost", "POST /v2/sandboxes$")
    async with make_manager().fresh(owner, "") as made:
        # The request whose answer was lost was sent again: one sandbox, not two.
        assert [i.sandbox_id for i in await alive(sandboxes, thread=owner.thread)] == [made.sandbox_id]


async def test_fresh_sandbox_that_cannot_be_ended_fails_nothing(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, caplog: pytest.LogCaptureFixture
) -> None:
    """What it was made for is done: the id is logged, with the command that ends it."""
    sandboxes.inject("status", "DELETE /sandboxes/", status=503, times=1_000)
    async with make_manager().fresh(owner, "") as made:
        pass
    assert f"e2b sandbox kill {made.sandbox_id}" in caplog.text


async def test_internet_of_a_fresh_sandbox_is_cut_after_the_set_up(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """As in any sandbox: open from the start where a set-up command runs, closed by `setup_done`."""
    sandboxes.inject("delay", "PUT /sandboxes/.*/network")
    manager = make_manager(internet="setup")
    async with manager.fresh(owner, "", setup=True) as made:
        await manager.setup_done(made)
    assert sandboxes.faults()[0]["hits"] == 1


@pytest.fixture
async def only_one() -> AsyncIterator[E2BLocal]:
    """A service whose account may run one sandbox at a time."""
    server = start_e2b_local(*isolation_arguments(), "--pool", "0", "--max-running", "1")
    yield server
    server.stop()


async def test_account_without_room_for_two_has_the_threads_own_paused(
    only_one: E2BLocal, owner: Owner
) -> None:
    """It sleeps while the fresh one is used, and wakes with its variables when it is needed again."""
    manager = sandbox_manager(Settings.from_env({**only_one.env, "DEPLOYMENT": "one"}))
    own = await manager.acquire(owner, "")
    await box(own.handle).run_code("x = 41", timeout_s=30)
    async with manager.fresh(owner, own.sandbox_id) as made:
        states = {i.sandbox_id: i.state.value for i in await alive(only_one, thread=owner.thread)}
        assert states == {own.sandbox_id: "paused", made.sandbox_id: "running"}
    again = await manager.acquire(owner, own.sandbox_id)
    assert again.how == "connected"
    assert (await box(again.handle).run_code("x + 1", timeout_s=30)).results[0].data["text/plain"] == "42"


async def test_account_without_room_for_one_is_a_clear_error(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """Others use all of it: refused in words, nothing made, and the thread's own still there."""
    manager = make_manager()
    own = await manager.acquire(owner, "")
    text = "you have reached the maximum number of concurrent E2B sandboxes (20)"
    sandboxes.inject("status", "POST /v2/sandboxes$", status=429, times=100, message=text)
    with pytest.raises(SandboxQuotaError, match=r"concurrent E2B sandboxes \(20\)"):
        async with manager.fresh(owner, own.sandbox_id):
            raise AssertionError("made")
    (left,) = await alive(sandboxes, thread=owner.thread)
    assert (left.sandbox_id, left.state.value) == (own.sandbox_id, "paused")


async def test_lost_fresh_sandbox_is_no_loss_of_the_thread(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """It dies in use: an error, and the run's own sandbox and its count of creations are as before."""
    manager = make_manager()
    own = await manager.acquire(owner, "")

    async def lose_one() -> None:
        async with manager.fresh(owner, own.sandbox_id) as made:
            await AsyncSandbox.kill(made.sandbox_id, **sandboxes.options)
            await box(made.handle).run_command("true", timeout_s=30)

    for _ in range(3):
        with pytest.raises(SandboxError):
            await lose_one()
    assert (await manager.acquire(owner, own.sandbox_id)).how == "cached"
    await AsyncSandbox.kill(own.sandbox_id, **sandboxes.options)
    with pytest.raises(SandboxError):
        await box(own.handle).run_command("true", timeout_s=30)
    assert (await manager.acquire(owner, own.sandbox_id)).how == "replaced"
