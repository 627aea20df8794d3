"""How long a sandbox lives once nobody works in it: its lease, whatever this package did in it."""

import asyncio
import io
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from e2b_code_interpreter import AsyncSandbox

from agent.sandbox.lease import Lease
from agent.sandbox.live import box
from agent.sandbox.owners import Owner
from agent.sandbox.provider import Box
from server.sandbox.conftest import MakeManager
from support.e2b_process import E2BLocal

LEASE_S = 30
WORK: dict[str, Callable[[Box], Awaitable[Any]]] = {
    "script": lambda one: one.run_command("true", timeout_s=300, spooled=False),
    "file operation": lambda one: one.work_on_files("list", path="/", root="/", also=[], most=1),
    "read": lambda one: one.read_file("/etc/hostname"),
    "write": lambda one: one.write_files({"/tmp/a": b"a"}),
    "upload": lambda one: one.upload("/tmp/a", io.BytesIO(b"a")),
    "short command": lambda one: one.run_command("true", timeout_s=10),
    "short cell": lambda one: one.run_code("1", timeout_s=10),
}


@pytest.mark.parametrize("work", list(WORK))
async def test_work_of_ours_leaves_no_longer_life_than_the_lease(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, work: str
) -> None:
    """With a lease of 30 s nothing but a command or a cell with a longer limit makes it longer."""
    manager = make_manager(lease_s=LEASE_S)
    acquired = await manager.acquire(owner, "")
    # As if most of the lease were over, so that it has to be renewed.
    acquired.handle.lease = Lease(LEASE_S, clock=_later())
    await WORK[work](box(acquired.handle))
    info = await AsyncSandbox.get_info(acquired.sandbox_id, **sandboxes.options)
    assert (info.end_at - datetime.now(UTC)).total_seconds() <= LEASE_S
    await manager.release(owner, acquired.sandbox_id)


def _later() -> Callable[[], float]:
    times = iter([0.0, *[LEASE_S - 1.0] * 1_000])
    return lambda: next(times)


async def test_lease_is_renewed_while_a_script_of_ours_runs(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """Again and again until its end, so that one that takes longer than the lease is not paused."""
    manager = make_manager(lease_s=LEASE_S)
    acquired = await manager.acquire(owner, "")
    acquired.handle.lease = Lease(1)  # looked at every 0.2 s
    sandboxes.inject("delay", "POST .*/connect", times=1_000)
    one = box(acquired.handle)
    script = asyncio.create_task(
        one.run_command("until test -e /tmp/go; do sleep 0.05; done", timeout_s=60, spooled=False)
    )
    async with asyncio.timeout(30):
        while sandboxes.faults()[0]["hits"] < 3:  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.05)
    await box(acquired.handle).write_files({"/tmp/go": b""})
    assert (await script).exit_code == 0
    await manager.release(owner, acquired.sandbox_id)
