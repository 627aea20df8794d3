"""The file tools, through the graph that calls them: exact, confined, clear about what they could not do."""

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from agent.sandbox.e2b.box import E2BBox, OwnedSandbox
from agent.tools import Limits, file_tools
from server.tools.conftest import CallTool
from support.e2b_process import isolation_missing

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
NAMES = [
    "plain.txt",
    "with space.txt",
    'it\'s "quoted".txt',
    "new\nline.txt",
    "ünï — 漢字 🙂.txt",
    "-rf",
    "'; import os; os.system('touch /tmp/pwn'); #",
    "$(touch /tmp/pwn)",
    "a\\b*?[c].txt",
]


async def test_many_files_are_written_under_exactly_their_names(box: E2BBox) -> None:
    """Names that a form cannot carry are no exception; a file under another name would look deleted."""
    names = ['say "hi".txt', "tab\there", "line\nbreak", "back\\slash", "100%25", "ü", "plain", " blank "]
    await box.write_files({f"/home/user/named/{name}": name.encode() for name in names})
    found = await box.run_command("printf '%s\\0' *", timeout_s=30, cwd="/home/user/named")
    assert sorted(found.stdout.split("\0")[:-1]) == sorted(names)
    for name in names:
        assert await box.read_file(f"/home/user/named/{name}") == name.encode()


@pytest.mark.parametrize("name", NAMES)
async def test_odd_names_and_long_contents_round_trip(
    call_tool: CallTool, handle: OwnedSandbox, name: str
) -> None:
    """300 KB of what a shell would stumble over come back byte for byte; nothing is run (A33, A37)."""
    content = "EOF\n'\"$(touch /tmp/pwn)`id`\\ \t€🙂\r\n" * 7_000
    said = await call_tool("write_file", path=f"odd/{name}", content=content)
    assert said.text.startswith(f"Wrote {len(content.encode())} bytes")
    assert bytes(await handle.files.read(f"/home/user/odd/{name}", format="bytes")) == content.encode()
    assert not await handle.files.exists("/tmp/pwn")
    read = await call_tool("read_file", path=f"odd/{name}", end_line=1)
    assert read.text.endswith('; go on with start_line=2">\nEOF\n</file>')
    listed = await call_tool("list_files", path="odd")
    shown = name if name.isprintable() else json.dumps(name)
    assert shown in listed.text or "/" in name
    deleted = await call_tool("delete_file", path=f"odd/{name}")
    assert deleted.text.startswith("Deleted the file")
    assert not await handle.files.exists(f"/home/user/odd/{name}")


async def test_a_file_is_read_by_pages(call_tool: CallTool, handle: OwnedSandbox) -> None:
    """Each page says where the next one starts, and together they are the file."""
    whole = "".join(f"line {n} {'x' * (n % 90)}\n" for n in range(2_000))
    await handle.files.write("/home/user/long.txt", whole)
    pages, start = "", 1
    while start:
        text = (await call_tool("read_file", path="long.txt", start_line=start)).text
        assert len(text.encode()) <= 16_384
        heading, _, body = text.partition(">\n")
        pages += body.removesuffix("</file>")
        start = int(heading.partition("start_line=")[2].rstrip('"') or 0)
    assert pages == whole
    part = await call_tool("read_file", path="long.txt", start_line=3, end_line=4)
    assert part.text.startswith('<file path="long.txt" lines="3-4 of 2000"')


async def test_one_long_line_is_read_by_bytes(call_tool: CallTool, handle: OwnedSandbox) -> None:
    """No character is cut in half between two pages."""
    whole = "€" * 20_000
    await handle.files.write("/home/user/line.txt", whole)
    first = (await call_tool("read_file", path="line.txt")).text
    pages, text = "", first
    while True:
        heading, _, body = text.partition(">\n")
        pages += body.removesuffix("\n</file>")
        start = heading.partition("start_byte=")[2].rstrip('"')
        if not start:
            break
        text = (await call_tool("read_file", path="line.txt", start_byte=int(start))).text
    assert pages == whole


async def test_what_is_no_text_is_told_apart(call_tool: CallTool, handle: OwnedSandbox) -> None:
    """Random bytes are binary with their size; an image becomes an image (A34)."""
    await handle.files.write("/home/user/random.bin", random.Random(5).randbytes(1000))
    await handle.files.write("/home/user/dot.png", PNG)
    binary = await call_tool("read_file", path="random.bin")
    assert binary.text.startswith("random.bin is binary: 1000 bytes")
    image = await call_tool("read_file", path="dot.png")
    assert image.text == f"dot.png is an image: image/png, {len(PNG)} bytes"
    assert image.artifact == {"results": [{"image/png": base64.b64encode(PNG).decode()}]}
    empty = await call_tool("write_file", path="empty", content="")
    assert empty.text == "Wrote 0 bytes to empty."
    assert 'lines="0-0 of 0"' in (await call_tool("read_file", path="empty")).text


@pytest.mark.skipif(isolation_missing() is not None, reason="root reads what nobody may read")
async def test_failures_do_not_look_empty(call_tool: CallTool, handle: OwnedSandbox) -> None:
    """Missing, wrong kind, unreadable and empty are five different answers (A36)."""
    await handle.commands.run("mkdir -p none shut; touch a.txt; chmod 0 shut")
    for tool, given in (
        ("list_files", {}),
        ("glob", {"pattern": "*"}),
        ("grep", {"pattern": "x"}),
    ):
        missing = (await call_tool(tool, path="nowhere", **given)).text
        assert missing == "error: nowhere: No such file or directory"
        assert (await call_tool(tool, path="shut", **given)).text == "error: shut: Permission denied"
    assert (await call_tool("list_files", path="none")).text == "(the folder is empty)"
    assert (await call_tool("glob", path="none", pattern="*")).text == "(nothing matches)"
    assert (await call_tool("grep", path="none", pattern="x")).text == "(no line matches; 0 files searched)"
    assert (await call_tool("list_files", path="a.txt")).text == "error: a.txt: Not a directory"
    assert (await call_tool("read_file", path="none")).text == "error: none: Is a directory"
    assert (await call_tool("read_file", path="nope")).text == "error: nope: No such file or directory"
    assert (await call_tool("delete_file", path="nope")).text == "error: nope: No such file or directory"
    assert "shut" in (await call_tool("glob", pattern="*.none")).text
    await handle.commands.run("chmod 700 shut")


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "/etc/passwd", "out/passwd", "deep/link/passwd", "passwd-link", "a\0b"]
)
@pytest.mark.parametrize(
    "tool", ["read_file", "write_file", "edit_file", "delete_file", "grep", "list_files"]
)
async def test_nothing_leads_out_of_the_work_folder(
    call_tool: CallTool, handle: OwnedSandbox, tool: str, path: str
) -> None:
    """Dots, absolute paths and links are refused, for reading and for writing (A38)."""
    await handle.commands.run(
        "mkdir -p deep; ln -sfn /etc out; ln -sfn /etc deep/link; ln -sfn /etc/passwd passwd-link"
    )
    given: dict[str, dict[str, Any]] = {
        "write_file": {"content": "x"},
        "edit_file": {"old": "root", "new": "toor"},
        "grep": {"pattern": "root"},
    }
    if (tool, path) == ("delete_file", "passwd-link"):
        assert (await call_tool(tool, path=path)).text == "Deleted the file passwd-link."
        assert await handle.files.exists("/etc/passwd")
        return
    said = (await call_tool(tool, path=path, **given.get(tool, {}))).text
    assert said.startswith("error: ")
    assert "work folder" in said


async def test_an_edit_is_exact_and_counted(call_tool: CallTool, handle: OwnedSandbox) -> None:
    """It replaces what occurs as often as said, and otherwise changes nothing and says what it found."""
    await handle.files.write("/home/user/e.py", "a = 1\nb = 1\r\nc = 1\n")
    once = await call_tool("edit_file", path="e.py", old="= 1", new="= 2")
    assert once.text.startswith("error: the old text occurs 3 times in e.py (lines 1, 2, 3), not 1.")
    none = await call_tool("edit_file", path="e.py", old="d = 1", new="")
    assert none.text.startswith("error: the old text does not occur in e.py")
    assert await handle.files.read("/home/user/e.py") == "a = 1\nb = 1\r\nc = 1\n"
    done = await call_tool("edit_file", path="e.py", old="b = 1\r", new="b = '€'\r")
    assert done.text == "Replaced 1 in e.py, line 2."
    every = await call_tool("edit_file", path="e.py", old=" = ", new="=", count=3)
    assert every.text == "Replaced 3 in e.py, lines 1, 2, 3."
    assert await handle.files.read("/home/user/e.py") == "a=1\nb='€'\r\nc=1\n"
    assert "is empty" in (await call_tool("edit_file", path="e.py", old="", new="x")).text


async def test_searches_find_and_say_when_they_are_cut(call_tool: CallTool, handle: OwnedSandbox) -> None:
    """Names by pattern at any depth, lines by expression with their numbers; more than fits is counted."""
    await handle.commands.run(
        "mkdir -p s/deep/er; cd s; printf 'one\\nTWO\\n' > a.py; echo two > deep/er/b.py; echo two > c.txt;"
        " printf '\\0two' > bin; mkdir -p .git; echo two > .git/x;"
        " for i in $(seq 3000); do : > deep/$i.log; done"
    )
    found = await call_tool("glob", path="s", pattern="*.py")
    assert found.text == "<paths>\na.py\ndeep/er/b.py\n</paths>"
    assert (
        await call_tool("glob", path="s", pattern="deep/*/*.py")
    ).text == "<paths>\ndeep/er/b.py\n</paths>"
    many = (await call_tool("glob", path="s", pattern="**/*.log")).text
    assert many.endswith("of 3000 matches; narrow it down]")
    assert len(many.encode()) < 16_384
    lines = await call_tool("grep", path="s", pattern="two", ignore_case=True)
    assert lines.text.startswith(
        "<matches>\na.py:2: TWO\nc.txt:1: two\ndeep/er/b.py:1: two\n</matches>\n[1 files that are not text"
    )
    only = await call_tool("grep", path="s", pattern="^two$", include="*.txt")
    assert only.text.startswith("<matches>\nc.txt:1: two\n</matches>")
    assert (await call_tool("grep", path="s", pattern="(")).text.startswith("error: the pattern is not")


async def test_a_large_file_does_not_pass_through_the_server(
    make_caller: Callable[[list[Any]], CallTool], handle: OwnedSandbox
) -> None:
    """Of a file of 200 MB only what is shown leaves the sandbox."""
    await handle.commands.run("yes 'a line of text' | head -c 200000000 > ~/huge.txt")
    call = make_caller(file_tools(Limits(max_output_bytes=2_000)))
    said = await call("read_file", path="huge.txt", start_line=500_000)
    assert said.text.startswith('<file path="huge.txt" lines="500000-')
    assert len(said.text.encode()) <= 2_000
    await handle.commands.run("rm ~/huge.txt")


async def test_what_lies_behind_the_end_is_not_made_up(call_tool: CallTool, handle: OwnedSandbox) -> None:
    """A page behind the end says how long the file is, and not to begin again; ~ is the home folder."""
    await handle.files.write("/home/user/short.txt", "a\nb\n")
    for given, note in (
        ({"start_line": 10}, "the file has 2 lines"),
        ({"start_line": 2, "end_line": 1}, "the file has 2 lines"),
        ({"start_byte": 99}, "the file has 4 bytes"),
    ):
        said = (await call_tool("read_file", path="~/short.txt", **given)).text
        assert f'note="nothing is there: {note}"' in said


async def test_a_pipe_is_refused_and_not_waited_for(call_tool: CallTool, handle: OwnedSandbox) -> None:
    """Opening one would wait for its other end, which nobody holds."""
    await handle.commands.run("mkfifo pipe")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"old": "x", "new": "y"}),
        ("grep", {"pattern": "x"}),
    ]
    for tool, given in calls:
        said = (await call_tool(tool, path="pipe", **given)).text
        assert said.endswith("pipe: it is neither a file nor a folder, but a pipe, a socket or a device")
    assert (await call_tool("delete_file", path="pipe")).text.startswith("Deleted")


async def test_folders_are_deleted_only_on_demand(call_tool: CallTool, handle: OwnedSandbox) -> None:
    """A folder with files needs `recursive`; the work folder itself stays."""
    await handle.commands.run("mkdir -p gone/deep; touch gone/deep/x")
    assert (await call_tool("delete_file", path="gone")).text == "error: gone: Directory not empty"
    assert (await call_tool("delete_file", path="gone", recursive=True)).text == "Deleted the folder gone."
    assert (await call_tool("delete_file", path=".", recursive=True)).text.startswith("error: ")


@pytest.mark.parametrize(("codec", "name"), [("latin-1", "latin-1"), ("utf-16", "utf-16-le with BOM")])
async def test_a_file_in_another_encoding_is_read_searched_and_edited(
    call_tool: CallTool, handle: OwnedSandbox, codec: str, name: str
) -> None:
    """As text, with the encoding named, and written back in it."""
    text = "# coding: latin-1\r\nname = 'Zoë'\r\n"
    await handle.files.write("/home/user/other.py", text.encode(codec))
    read = await call_tool("read_file", path="other.py")
    assert read.text == f'<file path="other.py" lines="1-2 of 2" encoding="{name}">\n{text}</file>'
    found = await call_tool("grep", path="other.py", pattern="^name = 'Zoë'$")
    assert found.text.startswith("<matches>\nother.py:2: name = 'Zoë'\n</matches>")
    edited = await call_tool("edit_file", path="other.py", old="'Zoë'", new="'Chloë'\nage = 5")
    assert edited.text == (
        f"Replaced 1 in other.py, line 2. Its lines end with \\r\\n, as before. Its encoding is {name}."
    )
    now = text.replace("'Zoë'", "'Chloë'\r\nage = 5")
    assert bytes(await handle.files.read("/home/user/other.py", format="bytes")) == now.encode(codec)


async def test_a_mark_at_a_files_start_hides_no_line(call_tool: CallTool, handle: OwnedSandbox) -> None:
    """It is no part of the first line, for reading and for searching."""
    await handle.files.write("/home/user/marked.py", "\ufeffimport os\n")
    found = await call_tool("grep", path="marked.py", pattern="^import")
    assert found.text.startswith("<matches>\nmarked.py:1: import os\n</matches>")
    read = await call_tool("read_file", path="marked.py")
    assert read.text.endswith('encoding="utf-8 with BOM">\nimport os\n</file>')


async def test_a_file_with_carriage_returns_keeps_them(call_tool: CallTool, handle: OwnedSandbox) -> None:
    """Lines that an edit puts in have them, and a file written anew."""
    await handle.files.write("/home/user/dos.txt", b"a\r\nb\r\n")
    await call_tool("edit_file", path="dos.txt", old="a\nb\n", new="a\nx\ny\nb\n")
    assert bytes(await handle.files.read("/home/user/dos.txt", format="bytes")) == b"a\r\nx\r\ny\r\nb\r\n"
    said = await call_tool("write_file", path="dos.txt", content="1\n2\n")
    assert said.text == "Wrote 6 bytes to dos.txt. Its lines end with \\r\\n, as before."
    assert bytes(await handle.files.read("/home/user/dos.txt", format="bytes")) == b"1\r\n2\r\n"
