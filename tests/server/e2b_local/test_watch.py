"""Watching folders, and metrics."""

from __future__ import annotations

import asyncio
import datetime

import httpx
import pytest
from e2b import FileNotFoundException, FilesystemEvent, FilesystemEventType, SandboxException
from e2b_code_interpreter import AsyncSandbox, Sandbox

from support.e2b_process import E2BLocal


async def test_a_watched_folder_streams_what_happens_in_it(shared: AsyncSandbox) -> None:
    """Writes, new folders and their files, renames and removals arrive by name, with the entry."""
    await shared.files.make_dir("watched")
    seen: list[FilesystemEvent] = []
    removed = asyncio.Event()

    def on_event(event: FilesystemEvent) -> None:
        seen.append(event)
        if event.type == FilesystemEventType.REMOVE:
            removed.set()

    handle = await shared.files.watch_dir("watched", on_event, recursive=True, include_entry=True)
    await shared.files.write("watched/a.txt", "text")
    await shared.files.make_dir("watched/below")
    await shared.commands.run("sleep 0.2; echo x > watched/below/b.txt; mv watched/a.txt watched/c.txt")
    await shared.files.remove("watched/c.txt")
    async with asyncio.timeout(30):
        await removed.wait()
    await handle.stop()
    told = {(event.type, event.name) for event in seen}
    assert {
        (FilesystemEventType.CREATE, "a.txt"),
        (FilesystemEventType.WRITE, "a.txt"),
        (FilesystemEventType.CREATE, "below"),
        (FilesystemEventType.CREATE, "below/b.txt"),
        (FilesystemEventType.RENAME, "a.txt"),
        (FilesystemEventType.REMOVE, "c.txt"),
    } <= told
    entries = [event.entry for event in seen if event.name == "below/b.txt" and event.entry]
    assert entries
    assert entries[0].path == "/home/user/watched/below/b.txt"


async def test_what_cannot_be_watched_is_told(shared: AsyncSandbox) -> None:
    """A missing folder and a file are errors."""
    await shared.files.write("file", "x")
    with pytest.raises(FileNotFoundException):
        await shared.files.watch_dir("nothing", lambda _: None)
    with pytest.raises(SandboxException):
        await shared.files.watch_dir("file", lambda _: None)


def test_events_can_be_fetched(server: E2BLocal) -> None:
    """The synchronous SDK asks for what has happened since it last asked."""
    with Sandbox.create(**server.options) as sandbox:
        sandbox.files.make_dir("watched")
        handle = sandbox.files.watch_dir("watched")
        sandbox.files.write("watched/a.txt", "1")
        assert {event.name for event in handle.get_new_events()} == {"a.txt"}
        assert handle.get_new_events() == []
        handle.stop()


async def test_metrics_tell_what_is_used(server: E2BLocal, shared: AsyncSandbox) -> None:
    """Memory and disk grow with what the sandbox holds; a range that is over has no samples."""
    before = (await shared.get_metrics())[0]
    await shared.files.write("big", "x" * 5_000_000)
    holding = asyncio.Event()
    await shared.commands.run(
        "python -c \"x = b'x' * 50_000_000; print('on', flush=True); input()\"",
        background=True,
        stdin=True,
        on_stdout=lambda _: holding.set(),
    )
    await holding.wait()
    after = (await shared.get_metrics())[0]
    assert after.disk_used >= before.disk_used + 5_000_000
    assert after.mem_used >= before.mem_used + 50_000_000
    assert after.mem_total == 2048 * 1024 * 1024
    async with httpx.AsyncClient(base_url=server.api_url, headers={"X-API-KEY": server.api_key}) as client:
        reply = await client.get("/sandboxes/metrics", params={"sandbox_ids": f"other,{shared.sandbox_id}"})
    (together,) = reply.json()["sandboxes"].items()
    assert together[0] == shared.sandbox_id
    assert together[1]["memUsed"] >= before.mem_used + 50_000_000
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    assert await shared.get_metrics(start=past, end=past + datetime.timedelta(minutes=1)) == []
