"""Where a program may write: anywhere below the root, in its sandbox's own view of it."""

from __future__ import annotations

import pathlib

import pytest
from e2b import FileNotFoundException
from e2b_code_interpreter import AsyncSandbox

from support.e2b_process import MakeSandbox

pytestmark = pytest.mark.usefixtures("isolated")
# What programs written for the cloud use; none of it is on the machine that runs these tests.
FOLDERS = (
    "/0",
    "/workspace",
    "/app",
    "/code",
    "/opt/tool",
    "/data/deep",
    "/etc/tool",
    "/var/lib/tool",
    "/home/x",
)


def _on_the_host() -> list[str]:
    return [each for each in FOLDERS if pathlib.Path(each).exists()]


@pytest.mark.parametrize("folder", FOLDERS)
async def test_a_folder_below_the_root_is_made_and_written(
    sandbox: AsyncSandbox, make_sandbox: MakeSandbox, folder: str
) -> None:
    """By the files API, a command and a cell alike; neither the host nor another sandbox sees any of it."""
    before = _on_the_host()
    assert await sandbox.files.make_dir(folder) is True
    assert (await sandbox.files.write(f"{folder}/api.txt", "api")).path == f"{folder}/api.txt"
    await sandbox.commands.run(f"mkdir -p {folder}/sub && cd {folder}/sub && echo command > command.txt")
    await sandbox.run_code(f"open({folder + '/cell.txt'!r}, 'w').write('cell')")
    shown = await sandbox.commands.run("cat api.txt sub/command.txt cell.txt; stat -c %U .", cwd=folder)
    assert shown.stdout == "apicommand\ncelluser\n"
    assert {each.path for each in await sandbox.files.list(folder)} == {
        f"{folder}/api.txt", f"{folder}/sub", f"{folder}/cell.txt",
    }  # fmt: skip
    other = await make_sandbox()
    with pytest.raises(FileNotFoundException):
        await other.files.read(f"{folder}/api.txt")
    await sandbox.files.rename(f"{folder}/api.txt", "/home/user/moved.txt")
    await sandbox.files.remove(folder)
    assert not await sandbox.files.exists(folder)
    assert _on_the_host() == before


async def _fill(sandbox: AsyncSandbox) -> None:
    for folder in FOLDERS:
        await sandbox.files.write(f"{folder}/f", folder)
    await sandbox.commands.run(
        "ln -s /workspace/f /link; mkdir -m 700 /own; chmod 600 /app/f; touch '/a b\nc'"
    )


async def _is_whole(sandbox: AsyncSandbox) -> bool:
    files = [await sandbox.files.read(f"{folder}/f") for folder in FOLDERS]
    shown = await sandbox.commands.run("stat -c '%a %N' /link /own /app/f; test -e '/a b\nc'")
    return (
        files == list(FOLDERS) and shown.stdout == "777 '/link' -> '/workspace/f'\n700 '/own'\n600 '/app/f'\n"
    )


async def test_a_pause_keeps_what_lies_below_the_root(sandbox: AsyncSandbox) -> None:
    """With the memory and without it."""
    await _fill(sandbox)
    for keep_memory in (True, False, False):
        await sandbox.pause(keep_memory=keep_memory)
        await sandbox.connect()
        assert await _is_whole(sandbox)


async def test_a_snapshot_and_a_fork_keep_what_lies_below_the_root(
    sandbox: AsyncSandbox, make_sandbox: MakeSandbox
) -> None:
    """Copies can be written as the first can, and end by themselves."""
    await _fill(sandbox)
    copy = await make_sandbox(template=(await sandbox.create_snapshot()).snapshot_id)
    (fork,) = await sandbox.fork()
    assert isinstance(fork, AsyncSandbox)
    try:
        for each in (copy, fork):
            assert await _is_whole(each)
            await each.files.write("/workspace/f", "changed")
        assert await sandbox.files.read("/workspace/f") == "/workspace"
    finally:
        await fork.kill()


async def test_a_kill_drops_what_lies_below_the_root(
    sandbox: AsyncSandbox, make_sandbox: MakeSandbox
) -> None:
    """The next sandbox begins with none of it, and nothing of it lies on the host."""
    before = _on_the_host()
    await _fill(sandbox)
    await sandbox.kill()
    after = await make_sandbox()
    assert [each for each in FOLDERS if await after.files.exists(f"{each}/f")] == []
    assert _on_the_host() == before
