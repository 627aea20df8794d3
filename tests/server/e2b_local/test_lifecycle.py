"""Timeouts, pauses and resumes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from e2b import (
    SandboxNotFoundException,
    SandboxNotRunningException,
    SandboxState,
    SandboxUnreachableException,
    TimeoutException,
)
from e2b_code_interpreter import AsyncSandbox

from support.e2b_process import E2BLocal, MakeSandbox


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await condition():  # noqa: ASYNC110 - the server tells nobody when a timeout has run out
            await asyncio.sleep(0.05)


async def test_timeout_kills(make_sandbox: MakeSandbox) -> None:
    """Without a lifecycle a sandbox is gone when its time is over."""
    sandbox = await make_sandbox(timeout=1)
    await _until(lambda: _stopped(sandbox))
    with pytest.raises(SandboxNotFoundException):
        await sandbox.get_info()


async def test_timeout_pauses_when_asked_to(make_sandbox: MakeSandbox) -> None:
    """With on_timeout pause it is paused then, looks gone to traffic, and comes back with its memory."""
    sandbox = await make_sandbox(timeout=300, lifecycle={"on_timeout": "pause"})
    await sandbox.run_code("x = 41")
    await sandbox.set_timeout(0)
    await _until(lambda: _stopped(sandbox))
    assert (await sandbox.get_info()).state == SandboxState.PAUSED
    with pytest.raises(SandboxNotRunningException):
        await sandbox.commands.run("true")
    await sandbox.connect(timeout=60)
    assert (await sandbox.run_code("x + 1")).text == "42"


async def test_auto_resume_wakes_on_traffic_for_five_minutes(make_sandbox: MakeSandbox) -> None:
    """A request wakes the sandbox, and it then lives 300 s although it asked for less."""
    sandbox = await make_sandbox(timeout=60, lifecycle={"on_timeout": "pause", "auto_resume": True})
    await sandbox.pause()
    assert (await sandbox.commands.run("echo awake")).stdout == "awake\n"
    info = await sandbox.get_info()
    assert info.state == SandboxState.RUNNING
    assert (info.end_at - info.started_at).total_seconds() > 250


async def test_connect_never_shortens(server: E2BLocal, make_sandbox: MakeSandbox) -> None:
    """connect to a running sandbox moves its end only further away; set_timeout moves it either way."""
    sandbox = await make_sandbox(timeout=600)
    before = (await sandbox.get_info()).end_at
    await AsyncSandbox.connect(sandbox.sandbox_id, timeout=60, **server.options)
    assert (await sandbox.get_info()).end_at == before
    await AsyncSandbox.connect(sandbox.sandbox_id, timeout=1200, **server.options)
    assert (await sandbox.get_info()).end_at > before
    await sandbox.set_timeout(60)
    assert (await sandbox.get_info()).end_at < before


async def test_connect_without_timeout_means_five_minutes(make_sandbox: MakeSandbox) -> None:
    """A running sandbox with less time left is extended to 300 s."""
    sandbox = await make_sandbox(timeout=20)
    await sandbox.connect()
    info = await sandbox.get_info()
    assert (info.end_at - info.started_at).total_seconds() > 250


async def test_pause_stops_processes_and_resume_continues_them(make_sandbox: MakeSandbox) -> None:
    """Nothing runs while paused, also not what a command left behind; afterwards all of it goes on."""
    sandbox = await make_sandbox()
    counter = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count; done"
    handle = await sandbox.commands.run(counter, background=True)
    assert await sandbox.pause() is True
    assert await sandbox.pause() is False
    await sandbox.connect()
    assert handle.pid in [process.pid for process in await sandbox.commands.list()]
    first = await sandbox.files.read("/tmp/count")

    async def moved() -> bool:
        return await sandbox.files.read("/tmp/count") != first

    await _until(moved)


async def test_pause_ends_open_streams(make_sandbox: MakeSandbox) -> None:
    """A command that is being waited for ends with an error that leaves the sandbox's state open."""
    sandbox = await make_sandbox()
    handle = await sandbox.commands.run("sleep 1000", background=True)
    waiting = asyncio.create_task(handle.wait())
    await sandbox.pause()
    with pytest.raises((SandboxNotRunningException, SandboxUnreachableException)):
        await waiting


async def test_kill_ends_a_command_in_flight(make_sandbox: MakeSandbox) -> None:
    """The waiting caller learns that the sandbox is gone."""
    sandbox = await make_sandbox()
    handle = await sandbox.commands.run("sleep 1000", background=True)
    waiting = asyncio.create_task(handle.wait())
    await sandbox.kill()
    with pytest.raises(SandboxNotRunningException):
        await waiting


async def test_kill_ends_a_cell_in_flight(make_sandbox: MakeSandbox) -> None:
    """The stream is dropped, so that the SDK asks and says that the sandbox was killed."""
    sandbox = await make_sandbox()
    started = asyncio.Event()
    running = asyncio.create_task(
        sandbox.run_code(
            "print('on', flush=True)\nimport time; time.sleep(1000)", on_stdout=lambda _: started.set()
        )
    )
    await started.wait()
    await sandbox.kill()
    with pytest.raises(TimeoutException, match="killed"):
        await running


async def _stopped(sandbox: AsyncSandbox) -> bool:
    return not await sandbox.is_running()
