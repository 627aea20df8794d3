"""Files through the SDK."""

from __future__ import annotations

import datetime
import hashlib
import io
from collections.abc import AsyncIterator

import httpx
import pytest
from e2b import AuthenticationException, FileNotFoundException, FileType, InvalidArgumentException
from e2b_code_interpreter import AsyncSandbox


async def test_write_makes_folders_and_read_returns_the_bytes(shared: AsyncSandbox) -> None:
    """Text, bytes, a stream and an empty file come back as they went in."""
    info = await shared.files.write("deep/down/ü.txt", "grüße")
    assert info.path == "/home/user/deep/down/ü.txt"
    assert await shared.files.read("deep/down/ü.txt") == "grüße"
    data = bytes(range(256)) * 1000
    await shared.files.write("/tmp/data.bin", data)
    assert bytes(await shared.files.read("/tmp/data.bin", format="bytes")) == data
    await shared.files.write("/tmp/stream.bin", io.BytesIO(data))
    assert bytes(await shared.files.read("/tmp/stream.bin", format="bytes")) == data
    await shared.files.write("/tmp/empty", "")
    assert await shared.files.read("/tmp/empty") == ""


async def test_write_replaces(shared: AsyncSandbox) -> None:
    """A shorter text leaves nothing of a longer one."""
    await shared.files.write("a", "long text")
    await shared.files.write("a", "x")
    assert await shared.files.read("a") == "x"


async def test_several_files_go_in_one_call(shared: AsyncSandbox) -> None:
    """Each is written under its own path."""
    written = await shared.files.write_files(
        [{"path": "one.txt", "data": "1"}, {"path": "/tmp/two.txt", "data": b"2"}]
    )
    assert [each.path for each in written] == ["/home/user/one.txt", "/tmp/two.txt"]
    assert await shared.files.read("/tmp/two.txt") == "2"


async def test_gzip_both_ways(shared: AsyncSandbox) -> None:
    """Compressed transfers carry the same bytes."""
    text = "all the same " * 10000
    await shared.files.write("z.txt", text, gzip=True)
    assert await shared.files.read("z.txt", gzip=True) == text


async def test_missing_files_and_folders(shared: AsyncSandbox) -> None:
    """Each call says in its own way that nothing is there."""
    with pytest.raises(FileNotFoundException):
        await shared.files.read("nothing")
    with pytest.raises(FileNotFoundException):
        await shared.files.list("nothing")
    with pytest.raises(FileNotFoundException):
        await shared.files.get_info("nothing")
    assert await shared.files.exists("nothing") is False
    await shared.files.remove("nothing")


async def test_a_folder_is_no_file(shared: AsyncSandbox) -> None:
    """Reading or replacing a folder is refused, and it stays."""
    await shared.files.make_dir("folder")
    with pytest.raises(InvalidArgumentException):
        await shared.files.read("folder")
    with pytest.raises(InvalidArgumentException):
        await shared.files.write("folder", "text")
    assert (await shared.files.get_info("folder")).type == FileType.DIR


async def test_list_goes_as_deep_as_asked(shared: AsyncSandbox) -> None:
    """Depth 1 shows a folder's own entries, depth 2 those of its folders too."""
    await shared.files.write("top/a.txt", "abc")
    await shared.files.write("top/sub/b.txt", "b")
    shallow = await shared.files.list("top")
    assert [(each.name, each.type) for each in shallow] == [("a.txt", FileType.FILE), ("sub", FileType.DIR)]
    assert shallow[0].size == 3
    assert [each.path for each in await shared.files.list("top", depth=2)] == [
        "/home/user/top/a.txt",
        "/home/user/top/sub",
        "/home/user/top/sub/b.txt",
    ]


async def test_make_dir_rename_remove(shared: AsyncSandbox) -> None:
    """A folder is made once, moved with what it holds, and removed with it."""
    assert await shared.files.make_dir("old") is True
    assert await shared.files.make_dir("old") is False
    await shared.files.write("old/file", "x")
    await shared.files.rename("old", "new")
    assert await shared.files.exists("old") is False
    assert await shared.files.read("new/file") == "x"
    await shared.files.remove("new")
    assert await shared.files.exists("new") is False


@pytest.mark.usefixtures("isolated")
async def test_links_and_dots_stay_inside(shared: AsyncSandbox) -> None:
    """A link to a host file and a path full of `..` find only what the sandbox itself holds."""
    await shared.commands.run("ln -s /etc/shadow link")
    with pytest.raises(FileNotFoundException):
        await shared.files.read("link")
    assert "user:" in await shared.files.read("../../../../../../etc/passwd")


async def test_metadata_stays_with_a_file_until_it_is_written_again(shared: AsyncSandbox) -> None:
    """It is told by write, get_info and list; each upload replaces all of it; a rename keeps it."""
    written = await shared.files.write("tagged/m.txt", "1", metadata={"kind": "plot", "run": "7"})
    assert written.metadata == {"kind": "plot", "run": "7"}
    await shared.files.rename("tagged/m.txt", "tagged/n.txt")
    assert (await shared.files.get_info("tagged/n.txt")).metadata == {"kind": "plot", "run": "7"}
    await shared.files.write("tagged/n.txt", b"2", metadata={"run": "8"})
    (listed,) = await shared.files.list("tagged")
    assert listed.metadata == {"run": "8"}
    await shared.files.write("tagged/n.txt", "3")
    assert not (await shared.files.get_info("tagged/n.txt")).metadata


async def test_an_entry_tells_what_it_is(shared: AsyncSandbox) -> None:
    """Size, mode, owner, time; a link has its target, and is described by what it points to."""
    await shared.files.write("entry.txt", "12345")
    await shared.commands.run("chmod 640 entry.txt; ln -s entry.txt entry-link; ln -s nowhere entry-dangling")
    info = await shared.files.get_info("entry.txt")
    assert (info.size, info.mode, info.permissions) == (5, 0o640, "-rw-r-----")
    assert info.owner == (await shared.commands.run("id -un")).stdout.strip()
    assert info.group == (await shared.commands.run("id -gn")).stdout.strip()
    assert abs((datetime.datetime.now(datetime.UTC) - info.modified_time).total_seconds()) < 600
    link = await shared.files.get_info("entry-link")
    assert (link.type, link.symlink_target, link.size) == (FileType.FILE, "/home/user/entry.txt", 5)
    dangling = await shared.files.get_info("entry-dangling")
    assert dangling.symlink_target == "/home/user/nowhere"


async def test_a_large_file_streams_both_ways(shared: AsyncSandbox) -> None:
    """What is read piece by piece is what a generator, compressed or not, has written."""
    piece = bytes(range(256)) * 4096

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield piece

    for gzip in (False, True):
        await shared.files.write("/tmp/large", pieces(), gzip=gzip)
        digest = hashlib.sha256()
        async for part in await shared.files.read("/tmp/large", format="stream", gzip=gzip):
            digest.update(part)
        assert digest.hexdigest() == hashlib.sha256(piece * 8).hexdigest()


@pytest.mark.usefixtures("isolated")
async def test_only_its_own_user_is_known(shared: AsyncSandbox) -> None:
    """`user` works wherever a user may be named; any other, root too, is refused."""
    await shared.files.write("users", "x", user="user")
    assert await shared.files.read("users", user="user") == "x"
    assert (await shared.commands.run("whoami; echo ~", user="user")).stdout == "user\n/home/user\n"
    with pytest.raises(AuthenticationException, match="invalid username"):
        await shared.commands.run("true", user="root")
    with pytest.raises(AuthenticationException, match="invalid username"):
        await shared.files.read("users", user="root")


async def test_a_page_of_a_sandbox_runs_no_script_at_its_signed_address(shared: AsyncSandbox) -> None:
    """Servers on this machine trust pages of localhost: what a sandbox wrote is not one of them."""
    await shared.files.write("page.html", "<script>fetch('http://127.0.0.1:2024/threads')</script>")
    async with httpx.AsyncClient() as client:
        page = await client.get(shared.download_url("page.html"))
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"] == "sandbox"
    assert page.headers["x-content-type-options"] == "nosniff"


async def test_a_signed_address_takes_an_upload(shared: AsyncSandbox) -> None:
    """For its own path only, and a reader's signature does not write."""
    async with httpx.AsyncClient() as client:
        url = shared.upload_url("signed.txt", use_signature_expiration=60)
        assert (await client.post(url, files={"file": ("signed.txt", b"up")})).status_code == 200
        assert await shared.files.read("signed.txt") == "up"
        url = shared.download_url("signed.txt")
        assert (await client.get(url)).text == "up"
        assert (await client.post(url, files={"file": ("signed.txt", b"no")})).status_code == 401
    assert await shared.files.read("signed.txt") == "up"


_PART = b'--x\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n'


async def test_a_signed_address_takes_a_part_without_a_name_of_a_file(shared: AsyncSandbox) -> None:
    """A page sends a text so; it is written to the path that was signed, however long it is."""
    async with httpx.AsyncClient(timeout=60) as client:
        for number, content in enumerate(
            (b"text", b"", b"a\r\nb\r\n", "ü\N{SNAKE}".encode(), b"l" * 3_000_000)
        ):
            url = shared.upload_url(f"typed/{number}.txt", use_signature_expiration=60)
            answer = await client.post(url, files={"file": (None, content)})
            assert answer.status_code == 200, answer.text
            assert [each["path"] for each in answer.json()] == [f"/home/user/typed/{number}.txt"]
            assert bytes(await shared.files.read(f"typed/{number}.txt", format="bytes")) == content


async def test_a_form_writes_its_file_and_leaves_its_other_fields(shared: AsyncSandbox) -> None:
    """Beside a part named file, what else a page sends is no file; alone, it is a 400 that says so."""
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    async with httpx.AsyncClient() as client:
        url = shared.upload_url("form.txt")
        fields = _PART % (b"token", b"t") + _PART % (b"file", b"mine") + _PART % (b"submit", b"Send")
        assert (await client.post(url, content=fields + b"--x--\r\n", headers=kind)).status_code == 200
        assert await shared.files.read("form.txt") == "mine"
        url = shared.upload_url("none.txt")
        answer = await client.post(url, content=_PART % (b"token", b"t") + b"--x--\r\n", headers=kind)
        assert (answer.status_code, "named 'file'" in answer.text) == (400, True)
        twice = _PART % (b"file", b"1") + _PART % (b"file", b"2") + b"--x--\r\n"
        assert (await client.post(url, content=twice, headers=kind)).status_code == 400
        assert await shared.files.read("none.txt") == "1"  # as E2B has it: the first was written
        answer = await client.post(url, content=_PART % (b"file", b"half"), headers=kind)
        assert (answer.status_code, "breaks off" in answer.text) == (400, True)


async def test_a_part_without_any_path_is_refused(shared: AsyncSandbox) -> None:
    """With neither a signed path nor a name of its own there is nowhere to write it."""
    headers = {
        "E2b-Sandbox-Id": shared.sandbox_id, "E2b-Sandbox-Port": "49983",
        "X-Access-Token": str(shared._envd_access_token),
    }  # fmt: skip
    async with httpx.AsyncClient() as client:
        url = f"{shared.connection_config._sandbox_url}/files"
        answer = await client.post(url, files={"file": (None, b"x")}, headers=headers)
    assert (answer.status_code, "no path" in answer.text) == (400, True)
