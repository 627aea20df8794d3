"""What git says is the project's is sent whole: as text, or as an archive where text cannot hold it."""

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from agent.cli import pack as packing
from agent.cli.pack import MAX_FILES, PackError, pack
from agent.cli.patch import apply, kept_as_they_are
from agent.repair import archive, request
from agent.repair.archive import check_archive
from agent.repair.diff import unified_diff
from agent.repair.workspace import _UNPACK

PACKAGES = ("venv", ".venv", "node_modules", "build", "dist", "src/venv", ".tox", "__pycache__")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a file."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    put(folder, {"a.py": b"x = 1\n"})
    return folder


def git(folder: Path, *arguments: str) -> None:
    """Run git with an identity of its own."""
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def put(folder: Path, files: dict[str, bytes]) -> None:
    """Write files."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def unpacked(data: bytes) -> dict[str, bytes | str]:
    """Return the files of an archive that the server takes: their content, or where a link points."""
    check_archive(io.BytesIO(data))
    with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as made:
        members = {entry.name: entry for entry in made}
        return {
            name: entry.linkname if entry.issym() else made.extractfile(entry).read()  # type: ignore[union-attr]
            for name, entry in members.items()
        }


def test_tracked_package_is_sent_whatever_its_name(folder: Path) -> None:
    """With what is new in it; a folder of that name which git does not track is left out, and named."""
    put(folder, {f"{name}/a.txt": b"1\n" for name in PACKAGES})
    put(folder, {".gitignore": b"build/\n*.log\n", "tracked.log": b"1\n"})
    git(folder, "add", "-Af")
    git(folder, "commit", "-qm", "x")
    put(folder, {"venv/new.txt": b"1\n", "build/new.txt": b"1\n", "other/node_modules/x.js": b"1\n"})
    put(folder, {"other/b.py": b"1\n", "other/c.pyc": b"1\n"})
    packed = pack(folder)
    sent = {f"{name}/a.txt" for name in PACKAGES} | {"tracked.log", "venv/new.txt", "other/b.py"}
    assert set(packed.project) == sent | {".gitignore", "a.py"}
    assert packed.left_out == dict.fromkeys(
        ["other/node_modules/", "other/c.pyc"], "caches or dependencies, and not tracked by git"
    )


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("latin.py", b"# -*- coding: latin-1 -*-\nx = '\xe9'\n"),
        ("utf16.txt", "x\n".encode("utf-16")),
        ("late.txt", b"x" * 9_000 + b"\0"),
        ("cut.txt", "é".encode()[:1]),
        ("caf\udce9/\udcff.py", b"x = 1\n"),
    ],
)
def test_file_that_is_no_text_brings_all_into_an_archive(folder: Path, name: str, data: bytes) -> None:
    """By itself: a project without it would be another one."""
    put(folder, {name: data, "crlf.txt": b"\xef\xbb\xbfx\r\n", "empty": b""})
    packed = pack(folder)
    assert (packed.project, packed.left_out) == ({}, {})
    files = {"a.py": b"x = 1\n", name: data, "crlf.txt": b"\xef\xbb\xbfx\r\n", "empty": b""}
    assert unpacked(packed.archive) == files
    assert set(packed.names) == files.keys()


def test_text_is_sent_as_it_is(folder: Path) -> None:
    """Line ends, a byte order mark, nothing at all, a pointer of git-lfs."""
    put(folder, {"crlf.txt": b"\xef\xbb\xbfx\r\ny\r", "empty": b"", "p": b"version https://git-lfs\n"})
    packed = pack(folder)
    assert {name: text.encode() for name, text in packed.project.items()} == {
        "a.py": b"x = 1\n",
        "crlf.txt": b"\xef\xbb\xbfx\r\ny\r",
        "empty": b"",
        "p": b"version https://git-lfs\n",
    }


def test_links_within_the_folder_are_sent_and_others_are_named(folder: Path) -> None:
    """Also one that leads nowhere, and one to a folder; none that leads out, or into git's own."""
    (folder / "deep").mkdir()
    for name, target in {
        "deep/up.py": "../a.py",
        "deep/none": "nothing",
        "to": "deep",
        "out": "../secret",
        "abs": "/etc/passwd",
        "deep/far": "../../project/a.py",
        "gits": ".git/config",
    }.items():
        (folder / name).symlink_to(target)
    packed = pack(folder)
    assert unpacked(packed.archive) == {
        "a.py": b"x = 1\n",
        "deep/up.py": "../a.py",
        "deep/none": "nothing",
        "to": "deep",
    }
    assert packed.left_out == dict.fromkeys(["abs", "deep/far", "gits", "out"], "a link out of the folder")


def test_executable_that_is_no_script_needs_an_archive(folder: Path) -> None:
    """The graph makes files executable that begin with `#!`, and no others."""
    put(folder, {"run": b"#!/bin/sh\n"})
    (folder / "run").chmod(0o755)
    assert set(pack(folder).project) == {"a.py", "run"}
    (folder / "a.py").chmod(0o755)
    with tarfile.open(fileobj=io.BytesIO(pack(folder).archive)) as made:
        assert {entry.name: entry.mode for entry in made} == {"a.py": 0o755, "run": 0o755}


def test_text_is_sent_alone_where_all_is_too_large_for_an_archive(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is named; without text enough for that, it is an error."""
    monkeypatch.setattr(packing, "MAX_ARCHIVE_BYTES", 10_000)
    put(folder, {"noise.bin": b"\0" + os.urandom(20_000)})
    packed = pack(folder)
    assert packed.names == ("a.py",)
    assert packed.left_out == {"noise.bin": "binary, and all is too large for an archive"}
    with pytest.raises(PackError, match=r"The largest: noise\.bin \(20,001 bytes\)"):
        pack(folder, archived=True)


def test_many_files_come_in_an_archive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph's input takes so many; the limits are those of the server."""
    assert request.MAX_INPUT_FILES == MAX_FILES
    assert request.MAX_INPUT_BYTES == packing.MAX_BYTES
    assert archive.MAX_ARCHIVE_BYTES == packing.MAX_ARCHIVE_BYTES
    assert archive.MAX_FILES == packing._MAX_ARCHIVED_FILES
    monkeypatch.setattr(packing, "MAX_FILES", 2)
    put(folder, {"b": b"", "c": b""})
    assert pack(folder).project == {}
    monkeypatch.setattr(packing, "_MAX_ARCHIVED_FILES", 2)
    with pytest.raises(PackError, match="in 2 files; it has 3"):
        pack(folder)


def test_deleted_and_clashing_files_are_as_the_folder_has_them(folder: Path) -> None:
    """Git's index remembers more than there is."""
    put(folder, {"gone.py": b"", "A.py": b"x = 2\n"})
    git(folder, "add", "-A")
    (folder / "gone.py").unlink()
    (folder / "a.py").write_bytes(b"x = 3\n")
    packed = pack(folder)
    assert packed.project == {"a.py": "x = 3\n", "A.py": "x = 2\n"}
    assert packed.left_out == {"gone.py": "deleted, or not checked out"}


@pytest.mark.parametrize("where", [".gitignore", "../.gitignore", ".git/info/exclude", "user"])
def test_file_that_git_ignores_here_is_kept_and_the_rest_is_applied(
    folder: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repair cannot know rules that do not travel; what is not there is written, what is there stays."""
    inner, rules = folder / "sub", "*.log\nbuild/\n"
    monkeypatch.setenv("HOME", str(folder.parent))
    match where:
        case "user":
            put(folder.parent, {".config/git/ignore": rules.encode()})
        case ".git/info/exclude":
            put(folder, {where: rules.encode()})
        case _:
            put(inner, {where: rules.encode()})
    put(inner, {"a.py": b"x = 1\n"})
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    put(inner, {"debug.log": b"mine", "build/x": b"mine"})
    sent = pack(inner).names
    assert not {"debug.log", "build/x"} & {*sent}
    after = {"a.py": "x = 2\n", "debug.log": "ours", "build/x": "ours", "build/y": "ours"}
    diff = unified_diff({"a.py": "x = 1\n"}, after)
    assert kept_as_they_are(inner, sorted(after)) == ["build/x", "debug.log"]
    assert apply(diff, inner, sent=sent) == ["a.py", "build/y"]
    assert (inner / "debug.log").read_bytes() == (inner / "build/x").read_bytes() == b"mine"
    assert (inner / "a.py").read_bytes() == b"x = 2\n"


def test_folder_that_git_ignores_is_refused_in_its_words(folder: Path) -> None:
    """Nothing would be sent, and nobody would see why."""
    put(folder, {".gitignore": b"sub/\n", "sub/a.py": b""})
    with pytest.raises(PackError, match="git ignores all that is in it"):
        pack(folder / "sub")


def test_bytes_are_applied_as_they_are(folder: Path) -> None:
    """In names and contents, to a committed file and as new ones."""
    before = {"caf\udce9.py": b"\xe9\r\n", "a.py": b"x = 1\n", "gone": b"\0"}
    put(folder, before)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    after = {"caf\udce9.py": b"\xe8\r\n", "a.py": "x = 'é'\n".encode("utf-16"), "n/\udcff": b"\0\xff"}
    names = apply(unified_diff(before, after), folder, sent=pack(folder).names)
    assert names == sorted({*before, *after})
    assert {name: (folder / name).read_bytes() for name in after} == after
    assert not (folder / "gone").exists()


def test_archive_of_a_project_with_one_folder_keeps_the_folder(folder: Path, tmp_path: Path) -> None:
    """What unpacks it takes a folder around all of it away."""
    (folder / "a.py").unlink()
    put(folder, {"pkg/latin.py": b"\xe9"})
    (tmp_path / ".repair").mkdir()
    (tmp_path / ".repair/archive").write_bytes(pack(folder).archive)
    (tmp_path / "unpacked").mkdir()
    subprocess.run(["bash", "-c", _UNPACK], cwd=tmp_path / "unpacked", check=True)
    assert (tmp_path / "unpacked/pkg/latin.py").read_bytes() == b"\xe9"
