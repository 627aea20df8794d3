"""Injected faults look to the SDK like the real thing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import httpx
import pytest
from e2b import (
    RateLimitException,
    SandboxException,
    SandboxNotRunningException,
    SandboxState,
    TimeoutException,
)
from e2b_code_interpreter import AsyncSandbox

from support.e2b_process import E2BLocal, MakeSandbox


@pytest.fixture(autouse=True)
def no_faults_left(server: E2BLocal) -> Iterator[None]:
    """Every test takes its faults with it."""
    yield
    server.clear_faults()


async def test_rate_limit_is_told_without_retries(server: E2BLocal) -> None:
    """A 429 that says Should-Retry: false reaches the caller after one request."""
    server.inject("status", "POST /v2/sandboxes", status=429, headers={"Should-Retry": "false"}, times=9)
    with pytest.raises(RateLimitException):
        await AsyncSandbox.create(**server.options)
    assert [fault["hits"] for fault in server.faults()] == [1]


async def test_a_server_error_passes_after_retries(server: E2BLocal, make_sandbox: MakeSandbox) -> None:
    """The SDK repeats a 503 by itself."""
    server.inject("status", "POST /v2/sandboxes", status=503)
    sandbox = await make_sandbox()
    assert await sandbox.is_running()


async def test_a_server_error_in_traffic_is_an_error(server: E2BLocal, shared: AsyncSandbox) -> None:
    """A 500 of the sandbox's daemon is an SDK exception and says nothing of the sandbox's end."""
    server.inject("status", "49983:/process", status=500)
    with pytest.raises(SandboxException):
        await shared.commands.run("true")
    assert (await shared.commands.run("echo on")).stdout == "on\n"


async def test_delay_and_late_hold_a_reply_back(server: E2BLocal, shared: AsyncSandbox) -> None:
    """The request is served once, before (late) or after (delay) the wait."""
    for kind in ("delay", "late"):
        server.inject(kind, "GET /sandboxes", seconds=0.2)
        started = time.monotonic()
        assert (await shared.get_info()).sandbox_id == shared.sandbox_id
        assert time.monotonic() - started >= 0.2


async def test_a_late_create_that_nobody_waits_for_still_makes_a_sandbox(server: E2BLocal) -> None:
    """Giving up does not undo it: only its metadata finds the sandbox then."""
    server.inject("late", "POST /v2/sandboxes", seconds=30)
    with pytest.raises(Exception, match="timed out"):
        await AsyncSandbox.create(metadata={"late": "yes"}, request_timeout=0.5, **server.options)
    options = {"api_url": server.api_url, "api_key": server.api_key}
    found = await AsyncSandbox.list(**options).next_items()
    left = [each.sandbox_id for each in found if each.metadata == {"late": "yes"}]
    assert len(left) == 1
    assert await AsyncSandbox.kill(left[0], **options)


async def test_a_cut_stream_of_a_living_sandbox_is_no_death(server: E2BLocal, shared: AsyncSandbox) -> None:
    """The stream breaks after the first piece; the sandbox answers the next command."""
    server.inject("cut", "49983:/process.Process/Start", after_chunks=1)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of whichever class the SDK makes it
        await shared.commands.run("echo a; sleep 1; echo b")
    assert not isinstance(caught.value, SandboxNotRunningException)
    assert (await shared.commands.run("echo on")).stdout == "on\n"


@pytest.mark.parametrize("kind", ["drop", "lost"])
async def test_a_connection_without_reply(server: E2BLocal, shared: AsyncSandbox, kind: str) -> None:
    """The caller gets an error; a lost request was served, a dropped one not."""
    server.inject(kind, "49983:/filesystem.Filesystem/MakeDir")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of whichever class the SDK makes it
        await shared.files.make_dir(f"made-{kind}")
    assert not isinstance(caught.value, SandboxNotRunningException)
    assert await shared.files.exists(f"made-{kind}") is (kind == "lost")


async def test_sudden_death_in_a_cell(server: E2BLocal, sandbox: AsyncSandbox) -> None:
    """A sandbox whose processes end in mid-cell is gone, and the caller is told so."""
    started = asyncio.Event()
    running = asyncio.create_task(
        sandbox.run_code("print('on')\nimport time; time.sleep(1000)", on_stdout=lambda _: started.set())
    )
    await started.wait()
    server.die(sandbox.sandbox_id)
    with pytest.raises(TimeoutException, match="killed"):
        await running
    with pytest.raises(SandboxNotRunningException):
        await sandbox.commands.run("true")


async def test_a_fault_is_for_one_sandbox(server: E2BLocal, make_sandbox: MakeSandbox) -> None:
    """A fault that names a sandbox leaves the others alone."""
    first, second = await make_sandbox(), await make_sandbox()
    server.inject("status", "/process", status=500, sandbox_id=first.sandbox_id)
    assert (await second.commands.run("echo fine")).stdout == "fine\n"
    with pytest.raises(SandboxException):
        await first.commands.run("true")


async def test_one_that_runs_dies_at_random(server: E2BLocal, make_sandbox: MakeSandbox) -> None:
    """What lives is listed with its state and metadata; a paused one is never chosen."""
    paused = await make_sandbox(metadata={"which": "paused"})
    await paused.pause()
    running = {(await make_sandbox()).sandbox_id for _ in range(2)}
    shown = {each["sandboxID"]: each for each in server.alive()}
    assert shown[paused.sandbox_id]["state"] == "paused"
    assert shown[paused.sandbox_id]["metadata"] == {"which": "paused"}
    assert running <= set(shown)
    others = {each["sandboxID"] for each in server.alive() if each["state"] == "running"} - running
    dead = server.die()
    assert dead in running | others
    async with asyncio.timeout(30):
        while dead in {each["sandboxID"] for each in server.alive()}:  # noqa: ASYNC110 - it ends by itself
            await asyncio.sleep(0.01)
    assert (await paused.get_info()).state == SandboxState.PAUSED


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_a_fault_strikes_as_often_as_it_is_told(server: E2BLocal, status: int) -> None:
    """So many times and then no more; with a chance of 0 never."""
    headers = {"X-API-KEY": server.api_key}
    server.inject("status", "GET /v2/sandboxes", status=status, times=2)
    server.inject("drop", "GET /v2/sandboxes", chance=0)
    async with httpx.AsyncClient(base_url=server.api_url, headers=headers) as client:
        told = [(await client.get("/v2/sandboxes")).status_code for _ in range(4)]
    assert told == [status, status, 200, 200]
