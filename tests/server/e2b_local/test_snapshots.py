"""Snapshots, forks and pauses that keep only files."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import sys
import tempfile
import venv

import pytest
from e2b import FileNotFoundException, SandboxException, SandboxNotFoundException, SandboxState
from e2b_code_interpreter import AsyncSandbox, Sandbox

from e2b_local.agent_client import AgentClient
from e2b_local.archives import save
from e2b_local.inbox.wire import Channel, OpError
from e2b_local.plain import PlainBox
from support.e2b_process import E2BLocal, MakeSandbox, start_e2b_local


async def test_a_snapshot_holds_files_as_they_were(
    server: E2BLocal, sandbox: AsyncSandbox, make_sandbox: MakeSandbox
) -> None:
    """Modes, links, odd names and other folders come along; later changes on either side do not."""
    await sandbox.files.write("/tmp/x y/ü\n.txt", "odd")
    await sandbox.commands.run("echo old > f; chmod 640 f; ln -s f link; ln f hard; mkdir -m 700 d")
    snapshot = await sandbox.create_snapshot()
    await sandbox.files.write("f", "new")
    copy = await make_sandbox(template=snapshot.snapshot_id)
    assert await copy.files.read("f") == "old\n"
    assert await copy.files.read("/tmp/x y/ü\n.txt") == "odd"
    listed = await copy.commands.run("stat -c '%n %a %h %N' f link d")
    assert listed.stdout == "f 640 2 'f'\nlink 777 1 'link' -> 'f'\nd 700 2 'd'\n"
    await copy.files.write("f", "copy's")
    assert await sandbox.files.read("f") == "new"
    options = {"api_url": server.api_url, "api_key": server.api_key}
    assert await AsyncSandbox.delete_snapshot(snapshot.snapshot_id, **options) is True
    assert await AsyncSandbox.delete_snapshot(snapshot.snapshot_id, **options) is False
    assert await copy.files.read("f") == "copy's"
    with pytest.raises(SandboxException):
        await make_sandbox(template=snapshot.snapshot_id)


async def test_holes_of_a_file_stay_holes(sandbox: AsyncSandbox, make_sandbox: MakeSandbox) -> None:
    """A file with nothing in it takes no room in a snapshot, however large it says it is."""
    await sandbox.commands.run("truncate -s 500G hole; echo end >> hole; truncate -s 900G /tmp/all")
    async with asyncio.timeout(60):
        snapshot = await sandbox.create_snapshot()
    copy = await make_sandbox(template=snapshot.snapshot_id)
    shown = await copy.commands.run("stat -c %s hole /tmp/all; du -k hole | cut -f1; tail -c 4 hole")
    assert shown.stdout == f"{(500 << 30) + 4}\n{900 << 30}\n4\nend\n"


class _EndlessBox(PlainBox):
    """A box whose agent, as one that a program has taken over might, sends an archive without end."""

    def __init__(self, socket_path: pathlib.Path) -> None:
        self.agent = AgentClient(socket_path)
        self.most_bytes = 8 << 20


async def test_an_archive_cannot_be_larger_than_a_sandbox(tmp_path: pathlib.Path) -> None:
    """Whatever comes out of a sandbox, the host's disk takes no more than its files could be."""

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel = Channel(reader, writer)
        with contextlib.suppress(ConnectionError):
            while True:
                await channel.send_data(bytes(1 << 20))

    with tempfile.TemporaryDirectory(prefix="e2b-test-") as folder:  # a socket's name must be short
        socket_path = pathlib.Path(folder, "s")
        agent = await asyncio.start_unix_server(send, socket_path)
        archive = tmp_path / "archive"
        with pytest.raises(OpError, match="too large"):
            await save(_EndlessBox(socket_path), archive)
        agent.close()
    assert not archive.exists()


@pytest.mark.usefixtures("isolated")
def test_a_python_below_tmp_is_no_part_of_a_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The template's Python may live where sandboxes have a folder of their own, as in a checkout there."""
    with tempfile.TemporaryDirectory(prefix="e2b-test-", dir="/tmp") as folder:
        pathlib.Path(folder).chmod(0o755)
        venv.create(folder, with_pip=False, symlinks=True)
        packages = next(pathlib.Path(folder, "lib").glob("python*/site-packages"))
        (packages / "these.pth").write_text("\n".join(path for path in sys.path if path))
        monkeypatch.setattr(sys, "executable", f"{folder}/bin/python")
        running = start_e2b_local("--pool", "0")
        try:
            with Sandbox.create(**running.options) as sandbox:
                sandbox.files.write("/tmp/f", "kept")
                assert sandbox.commands.run(f"ls {folder}/bin/python").exit_code == 0
                snapshot = sandbox.create_snapshot()
                with Sandbox.create(template=snapshot.snapshot_id, **running.options) as copy:
                    assert copy.files.read("/tmp/f") == "kept"
        finally:
            assert running.stop() == 0


async def test_snapshots_are_listed_and_named(server: E2BLocal, make_sandbox: MakeSandbox) -> None:
    """In pages, newest first; a name finds one, also as a template, and moves to the latest that has it."""
    sandbox = await make_sandbox()
    options = {"api_url": server.api_url, "api_key": server.api_key}
    await sandbox.files.write("f", "1")
    first = await sandbox.create_snapshot(name="work/state:v1")
    await sandbox.files.write("f", "2")
    second = await sandbox.create_snapshot(name="work/state:v1")
    found = await AsyncSandbox.list_snapshots(sandbox_id=sandbox.sandbox_id, **options).next_items()
    assert [each.snapshot_id for each in found] == [second.snapshot_id, first.snapshot_id]
    found = await AsyncSandbox.list_snapshots(name="work/state:v1", **options).next_items()
    assert [each.snapshot_id for each in found] == [second.snapshot_id]
    pages = AsyncSandbox.list_snapshots(sandbox_id=sandbox.sandbox_id, limit=1, **options)
    shown = [*(await pages.next_items()), *(await pages.next_items())]
    assert [each.snapshot_id for each in shown] == [second.snapshot_id, first.snapshot_id]
    assert not pages.has_next
    copy = await make_sandbox(template="work/state:v1")
    assert await copy.files.read("f") == "2"
    assert await AsyncSandbox.delete_snapshot("work/state:v1", **options) is True
    assert await AsyncSandbox.delete_snapshot(first.snapshot_id, **options) is True


async def test_forks_start_from_the_files_and_leave_the_source_running(
    server: E2BLocal, make_sandbox: MakeSandbox
) -> None:
    """Each fork has the files and the metadata; the source alone keeps its processes."""
    sandbox = await make_sandbox(metadata={"of": "family"}, envs={"A": "1"})
    await sandbox.files.write("f", "shared")
    handle = await sandbox.commands.run("sleep 1000", background=True)
    forks = await sandbox.fork(count=2, timeout=60)
    try:
        for fork in forks:
            assert isinstance(fork, AsyncSandbox)
            assert await fork.files.read("f") == "shared"
            assert (await fork.commands.run("echo $A $E2B_SANDBOX_ID")).stdout == f"1 {fork.sandbox_id}\n"
            assert (await fork.get_info()).metadata == {"of": "family"}
            assert await fork.commands.list() == []
        assert [each.pid for each in await sandbox.commands.list()] == [handle.pid]
    finally:
        for fork in forks:
            if isinstance(fork, AsyncSandbox):
                await fork.kill()
    await sandbox.kill()
    with pytest.raises(SandboxNotFoundException):
        await sandbox.fork()


async def test_a_pause_without_memory_keeps_files_only(make_sandbox: MakeSandbox) -> None:
    """Resumed it has its files, id, variables and token, but no process of before."""
    sandbox = await make_sandbox(envs={"A": "1"})
    await sandbox.files.write("f", "kept")
    await sandbox.commands.run("sleep 1000", background=True)
    assert await sandbox.pause(keep_memory=False)
    assert (await sandbox.get_info()).state == SandboxState.PAUSED
    await sandbox.connect()
    assert await sandbox.files.read("f") == "kept"
    assert (await sandbox.commands.run("echo $A")).stdout == "1\n"
    assert await sandbox.commands.list() == []


async def test_a_paused_sandbox_can_be_rebooted(make_sandbox: MakeSandbox) -> None:
    """It was paused with its memory and comes back with its files alone."""
    sandbox = await make_sandbox()
    await sandbox.files.write("f", "kept")
    await sandbox.commands.run("sleep 1000", background=True)
    await sandbox.pause()
    await sandbox.connect(on_resume="reboot")
    assert await sandbox.files.read("f") == "kept"
    assert await sandbox.commands.list() == []


@pytest.mark.usefixtures("isolated")
async def test_a_resume_without_memory_is_a_boot(sandbox: AsyncSandbox) -> None:
    """The boot id is another one then, as of a machine that was started again."""
    before = await sandbox.files.read("/proc/sys/kernel/random/boot_id")
    assert await sandbox.pause(keep_memory=False)
    await sandbox.connect()
    assert await sandbox.files.read("/proc/sys/kernel/random/boot_id") != before


async def test_a_snapshot_does_not_disturb_what_runs(sandbox: AsyncSandbox) -> None:
    """A command in flight goes on after the snapshot."""
    handle = await sandbox.commands.run("read line; echo got $line", background=True, stdin=True)
    await sandbox.create_snapshot()
    await handle.send_stdin("it\n")
    assert (await handle.wait()).stdout == "got it\n"
    with pytest.raises(FileNotFoundException):
        await sandbox.files.read("nothing")
