"""Files through the SDK."""

from __future__ import annotations

import io

import pytest
from e2b import FileNotFoundException, FileType, InvalidArgumentException
from e2b_code_interpreter import AsyncSandbox


async def test_write_makes_folders_and_read_returns_the_bytes(sandbox: AsyncSandbox) -> None:
    """Text, bytes, a stream and an empty file come back as they went in."""
    info = await sandbox.files.write("deep/down/ü.txt", "grüße")
    assert info.path == "/home/user/deep/down/ü.txt"
    assert await sandbox.files.read("deep/down/ü.txt") == "grüße"
    data = bytes(range(256)) * 1000
    await sandbox.files.write("/tmp/data.bin", data)
    assert bytes(await sandbox.files.read("/tmp/data.bin", format="bytes")) == data
    await sandbox.files.write("/tmp/stream.bin", io.BytesIO(data))
    assert bytes(await sandbox.files.read("/tmp/stream.bin", format="bytes")) == data
    await sandbox.files.write("/tmp/empty", "")
    assert await sandbox.files.read("/tmp/empty") == ""


async def test_write_replaces(sandbox: AsyncSandbox) -> None:
    """A shorter text leaves nothing of a longer one."""
    await sandbox.files.write("a", "long text")
    await sandbox.files.write("a", "x")
    assert await sandbox.files.read("a") == "x"


async def test_several_files_go_in_one_call(sandbox: AsyncSandbox) -> None:
    """Each is written under its own path."""
    written = await sandbox.files.write_files(
        [{"path": "one.txt", "data": "1"}, {"path": "/tmp/two.txt", "data": b"2"}]
    )
    assert [each.path for each in written] == ["/home/user/one.txt", "/tmp/two.txt"]
    assert await sandbox.files.read("/tmp/two.txt") == "2"


async def test_gzip_both_ways(sandbox: AsyncSandbox) -> None:
    """Compressed transfers carry the same bytes."""
    text = "all the same " * 10000
    await sandbox.files.write("z.txt", text, gzip=True)
    assert await sandbox.files.read("z.txt", gzip=True) == text


async def test_missing_files_and_folders(sandbox: AsyncSandbox) -> None:
    """Each call says in its own way that nothing is there."""
    with pytest.raises(FileNotFoundException):
        await sandbox.files.read("nothing")
    with pytest.raises(FileNotFoundException):
        await sandbox.files.list("nothing")
    with pytest.raises(FileNotFoundException):
        await sandbox.files.get_info("nothing")
    assert await sandbox.files.exists("nothing") is False
    await sandbox.files.remove("nothing")


async def test_a_folder_is_no_file(sandbox: AsyncSandbox) -> None:
    """Reading or replacing a folder is refused, and it stays."""
    await sandbox.files.make_dir("folder")
    with pytest.raises(InvalidArgumentException):
        await sandbox.files.read("folder")
    with pytest.raises(InvalidArgumentException):
        await sandbox.files.write("folder", "text")
    assert (await sandbox.files.get_info("folder")).type == FileType.DIR


async def test_list_goes_as_deep_as_asked(sandbox: AsyncSandbox) -> None:
    """Depth 1 shows a folder's own entries, depth 2 those of its folders too."""
    await sandbox.files.write("top/a.txt", "abc")
    await sandbox.files.write("top/sub/b.txt", "b")
    shallow = await sandbox.files.list("top")
    assert [(each.name, each.type) for each in shallow] == [("a.txt", FileType.FILE), ("sub", FileType.DIR)]
    assert shallow[0].size == 3
    assert [each.path for each in await sandbox.files.list("top", depth=2)] == [
        "/home/user/top/a.txt",
        "/home/user/top/sub",
        "/home/user/top/sub/b.txt",
    ]


async def test_make_dir_rename_remove(sandbox: AsyncSandbox) -> None:
    """A folder is made once, moved with what it holds, and removed with it."""
    assert await sandbox.files.make_dir("old") is True
    assert await sandbox.files.make_dir("old") is False
    await sandbox.files.write("old/file", "x")
    await sandbox.files.rename("old", "new")
    assert await sandbox.files.exists("old") is False
    assert await sandbox.files.read("new/file") == "x"
    await sandbox.files.remove("new")
    assert await sandbox.files.exists("new") is False


@pytest.mark.usefixtures("isolated")
async def test_links_and_dots_stay_inside(sandbox: AsyncSandbox) -> None:
    """A link to a host file and a path full of `..` find only what the sandbox itself holds."""
    await sandbox.commands.run("ln -s /etc/shadow link")
    with pytest.raises(FileNotFoundException):
        await sandbox.files.read("link")
    assert "user:" in await sandbox.files.read("../../../../../../etc/passwd")
