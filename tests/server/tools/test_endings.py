"""What is left of a command or a cell after its limit, a cancel, or a broken stream: nothing."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Literal

import pytest

from agent.errors import SandboxUnreachableError
from agent.sandbox.e2b.box import E2BBox, OwnedSandbox
from support.e2b_process import E2BLocal, isolation_missing

FAMILY = """
sleep 3001 &
setsid sleep 3002 &
env -i sleep 3003 &
nohup bash -c 'sleep 3004 & exec sleep 3005' >/dev/null 2>&1 &
echo started
exec sleep 3006
"""
"""Children in the background, in another session, without the environment, and of another parent."""


async def sleepers(handle: OwnedSandbox) -> str:
    """Return the sleeps that run in the sandbox, the argument of each on a line."""
    found = await handle.commands.run("ps -eo args= | sed -n 's/^sleep \\(30..\\)$/\\1/p' | sort")
    return found.stdout


async def cancelled_after_output(work: Coroutine[Any, Any, Any], begun: asyncio.Event) -> None:
    """Cancel the work once `begun` is set, and see that it takes the cancellation."""
    task = asyncio.create_task(work)
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.skipif(isolation_missing() is not None, reason="it would end the tests' own processes")
async def test_a_command_may_end_everything_called_python(box: E2BBox) -> None:
    """What passes its output on goes by another name, and does not fill the list of processes."""
    done = await box.run_command("pkill python; pkill python3; echo survived; ps -eo args", timeout_s=30)
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "survived")
    assert len(done.stdout) < 4_000


async def test_a_timeout_ends_the_whole_tree_of_a_command(box: E2BBox, handle: OwnedSandbox) -> None:
    """Said as a timeout, not as an exit code, and no child outlives it (A22)."""
    result = await box.run_command(FAMILY, timeout_s=1)
    assert (result.timed_out, result.exit_code, result.stdout) == (True, None, "started\n")
    assert await sleepers(handle) == ""


async def test_a_cancelled_command_is_ended_with_its_tree(box: E2BBox, handle: OwnedSandbox) -> None:
    """By the time the cancellation comes back, nothing of the command runs (A54, A56)."""
    begun = asyncio.Event()

    async def heard(stream: Literal["stdout", "stderr"], piece: str) -> None:
        begun.set()

    await cancelled_after_output(box.run_command(FAMILY, timeout_s=60, on_output=heard), begun)
    assert await sleepers(handle) == ""


async def test_a_command_cancelled_before_it_was_seen_to_start_is_ended(
    box: E2BBox, handle: OwnedSandbox, sandboxes: E2BLocal
) -> None:
    """The daemon's first word was still on its way: the command is waited for and ended."""
    sandboxes.inject("late", "process.Process/Start", seconds=0.5)
    task = asyncio.create_task(box.run_command("exec sleep 3007", timeout_s=60))
    while "3007" not in await sleepers(handle):
        pass
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await sleepers(handle) == ""


async def test_a_cancelled_search_is_ended(box: E2BBox, handle: OwnedSandbox) -> None:
    """Work on files is ended as commands are."""
    await handle.files.write("/home/user/hard.txt", "a" * 40 + "!")
    endless = {"pattern": "(a+)+$", "only": None, "ignore_case": False, "most": 1, "room": 1000}
    work = box.work_on_files("search", path="/home/user/hard.txt", root="/home/user", also=[], **endless)
    task = asyncio.create_task(work)
    readers = "ps -eo args= | grep -c '^python3 -I -S' || true"
    while (await handle.commands.run(readers)).stdout == "0\n":
        pass
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await handle.commands.run(readers)).stdout == "0\n"


async def test_a_broken_stream_leaves_no_command_behind(
    box: E2BBox, handle: OwnedSandbox, sandboxes: E2BLocal
) -> None:
    """The end was never seen: the outcome is unknown, and nothing runs on (A27)."""
    sandboxes.inject("cut", "process.Process/Start", after_chunks=2)
    result = await box.run_command("echo a; sleep 0.2; echo b; exec sleep 3008", timeout_s=60)
    assert (result.exit_code, result.timed_out) == (None, False)
    assert await sleepers(handle) == ""


async def test_a_cancelled_cell_is_interrupted_at_once(box: E2BBox) -> None:
    """The next cell works within two seconds, and variables are still there (A56)."""
    begun = asyncio.Event()

    async def heard(stream: Literal["stdout", "stderr"], piece: str) -> None:
        begun.set()

    endless = "kept = 5\nprint('begun', flush=True)\nwhile True: pass"
    await cancelled_after_output(box.run_code(endless, timeout_s=60, on_output=heard), begun)
    async with asyncio.timeout(2):
        result = await box.run_code("print(kept)", timeout_s=60)
    assert result.stdout == "5\n"


async def test_the_environment_is_read_anew_and_kept_out_of_arguments(
    box: E2BBox, handle: OwnedSandbox
) -> None:
    """A value that changes between two calls is the new one, in commands and cells alike (A19)."""
    values = iter(["s3cret-one", "s3cret-two", "s3cret-three"])

    async def environment() -> dict[str, str]:
        return {"API_TOKEN": next(values)}

    handle.environment = environment
    shown = "echo $API_TOKEN $OTHER; tr '\\0' ' ' < /proc/$$/cmdline"
    first = await box.run_command(shown, timeout_s=60, envs={"OTHER": "plain"})
    second = await box.run_command(shown, timeout_s=60)
    cell = await box.run_code("import os; print(os.environ['API_TOKEN'])", timeout_s=60)
    after = await handle.run_code("print(os.environ.get('API_TOKEN'))")
    assert first.stdout.startswith("s3cret-one plain\n")
    assert second.stdout.startswith("s3cret-two\n")
    assert "s3cret" not in first.stdout.split("\n", 1)[1]
    assert cell.stdout == "s3cret-three\n"
    assert "".join(after.logs.stdout) == "None\n"


async def test_a_start_that_is_not_confirmed_is_asked_for_once_more(
    box: E2BBox, handle: OwnedSandbox, sandboxes: E2BLocal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that was slow is sent again, and the command runs once (A24)."""
    monkeypatch.setattr(handle.connection_config, "request_timeout", 0.5)
    sandboxes.inject("delay", "process.Process/Start", seconds=1)
    result = await box.run_command("echo ran | tee -a ~/runs", timeout_s=60)
    assert (result.exit_code, result.stdout) == (0, "ran\n")
    await asyncio.sleep(1)
    assert await handle.files.read("/home/user/runs") == "ran\n"


async def test_a_command_that_was_started_unheard_is_not_started_again(
    box: E2BBox, handle: OwnedSandbox, sandboxes: E2BLocal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply was late, not the command: the outcome is unknown, and it is neither repeated nor left."""
    monkeypatch.setattr(handle.connection_config, "request_timeout", 0.5)
    sandboxes.inject("late", "process.Process/Start", seconds=3)
    result = await box.run_command("echo ran >> ~/unheard; exec sleep 3009", timeout_s=60)
    assert (result.exit_code, result.timed_out) == (None, False)
    assert await handle.files.read("/home/user/unheard") == "ran\n"
    assert await sleepers(handle) == ""


async def test_a_sandbox_that_does_not_respond_is_called_so(
    box: E2BBox, handle: OwnedSandbox, sandboxes: E2BLocal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer, asked twice, is an error of the platform and not a slow command (A24)."""
    monkeypatch.setattr(handle.connection_config, "request_timeout", 0.3)
    sandboxes.inject("delay", "process.Process/Start", seconds=2, times=2)
    with pytest.raises(SandboxUnreachableError, match="not responding"):
        await box.run_command("echo a", timeout_s=60)
