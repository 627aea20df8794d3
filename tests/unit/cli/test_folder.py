"""Nothing is read or written outside of the folder that was named, whatever lies in it."""

import hashlib
import io
import os
import struct
import subprocess
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.folder import Content, Folder, refused_name
from agent.cli.pack import PackError, pack
from agent.cli.patch import PatchError, apply, cautions, touched
from agent.repair.diff import unified_diff

SECRET = "the user's, outside of the folder"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository beside a file that is not its own."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x.py").write_text(SECRET)
    (tmp_path / "secret.txt").write_text(SECRET)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def index(folder: Path, *names: bytes) -> None:
    """Write an index as git would not: with any names."""
    body = b"DIRC" + struct.pack(">II", 2, len(names))
    for name in sorted(names):
        entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 0) + bytes(20)
        entry += struct.pack(">H", len(name)) + name
        body += entry + bytes(8 - len(entry) % 8)
    (folder / ".git/index").write_bytes(body + hashlib.sha1(body).digest())


@pytest.mark.parametrize(
    "name",
    [
        "../secret.txt",
        "../outside/x.py",
        "deep/../../secret.txt",
        "/etc/passwd",
        ".git/config",
        "deep/.git/config",
        ".GIT/config",
        ".git./config",
        "git~1/config",
        ".git::$INDEX_ALLOCATION/config",
        ".g\u200cit/config",
        "./a.py",
        "deep//a.py",
    ],
)
def test_index_that_names_what_is_not_the_folders_is_refused_by_name(folder: Path, name: str) -> None:
    """Such an index was made by hand: nothing is sent, and the name is said."""
    index(folder, b"a.py", name.encode())
    with pytest.raises(PackError) as refused:
        pack(folder)
    assert repr(name) in str(refused.value)
    assert "Nothing was sent" in str(refused.value)


def test_index_of_the_repository_around_does_not_lead_out_of_the_folder(folder: Path) -> None:
    """Seen from a subfolder the names above it are outside."""
    (folder / "deep").mkdir()
    (folder / "deep/b.py").write_text("y = 1\n")
    index(folder, b"a.py", b"deep/../a.py", b"deep/b.py")
    with pytest.raises(PackError, match="leads out of the folder"):
        pack(folder / "deep")
    index(folder, b"a.py", b"../secret.txt", b"deep/b.py")
    assert pack(folder / "deep").names == ("b.py",)


def test_entry_behind_a_link_is_left_out_by_name(folder: Path, tmp_path: Path) -> None:
    """Git's index remembers files of a folder that has become a link."""
    (folder / "deep").symlink_to(tmp_path / "outside")
    (folder / "abs").symlink_to("/etc")
    index(folder, b"a.py", b"deep/x.py", b"abs/passwd", b"a.py/under.py")
    packed = pack(folder)
    assert packed.names == ("a.py",)
    assert packed.left_out.items() >= {"deep/x.py": "behind a link", "abs/passwd": "behind a link"}.items()
    assert packed.left_out["a.py/under.py"] == "deleted, or not checked out"


def test_name_that_would_bend_a_line_is_left_out_by_name(folder: Path) -> None:
    """A name with a newline would read as two, on a screen or in a listing."""
    (folder / "b.py\nnothing else").write_text("y = 1\n")
    (folder / "\x1b[2Kc.py").write_text("z = 1\n")
    packed = pack(folder)
    assert packed.names == ("a.py",)
    assert set(packed.left_out.values()) == {"its name has control characters"}


@pytest.mark.parametrize("tracked", [True, False])
def test_pipe_and_socket_are_left_out_and_not_waited_for(folder: Path, tracked: bool) -> None:
    """Opening a FIFO would wait for a writer that never comes."""
    os.mkfifo(folder / "pipe")
    if tracked:
        index(folder, b"a.py", b"pipe")
    packed = pack(folder, archived=True)
    assert packed.names == ("a.py",)


def test_file_that_grows_while_it_is_read_is_cut_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a file's size was is not believed."""
    monkeypatch.setattr("agent.cli.pack._MAX_UNPACKED_BYTES", 10_000)
    real = Folder.kind

    def grown(self: Folder, name: str) -> object:
        found = real(self, name)
        with (self.path / name).open("ab") as file:
            file.truncate(50_000_000_000)
        return found

    monkeypatch.setattr(Folder, "kind", grown)
    with pytest.raises(PackError, match="too large"):
        pack(folder, archived=True)


def swapping(folder: Path, outside: Path, done: threading.Event) -> None:
    """Make `deep` a folder and a link by turns, as fast as it goes."""
    while not done.is_set():
        (folder / "deep").rename(folder.parent / "aside")
        (folder / "deep").symlink_to(outside)
        (folder / "deep").unlink()
        (folder.parent / "aside").rename(folder / "deep")


def test_folder_that_becomes_a_link_between_listing_and_reading_gives_nothing_away(
    folder: Path, tmp_path: Path
) -> None:
    """Each try sends the folder's own file, leaves it out, or is refused."""
    (folder / "deep").mkdir()
    (folder / "deep/x.py").write_text("y = 1\n")
    index(folder, b"a.py", b"deep/x.py")
    done = threading.Event()
    swapper = threading.Thread(target=swapping, args=(folder, tmp_path / "outside", done))
    swapper.start()
    try:
        with Folder(folder) as place:
            for _ in range(2000):
                place._forget()
                try:
                    assert place.read("deep/x.py", 1000).data == b"y = 1\n"
                except OSError:
                    continue
        for _ in range(5):
            try:
                assert SECRET not in pack(folder).project.values()
            except PackError:
                continue
    finally:
        done.set()
        swapper.join()


def test_change_of_a_folder_that_becomes_a_link_stays_inside(folder: Path, tmp_path: Path) -> None:
    """Each try changes the folder's own file, or is refused."""
    (folder / "deep").mkdir()
    (folder / "deep/x.py").write_text(SECRET)
    done = threading.Event()
    swapper = threading.Thread(target=swapping, args=(folder, tmp_path / "outside", done))
    swapper.start()
    try:
        with Folder(folder) as place:
            for number in range(500):
                place._forget()
                try:
                    before = {"deep/x.py": place.read("deep/x.py", 1000)}
                    place.replace({"deep/x.py": Content(f"{number}\n".encode())}, before)
                except OSError:
                    continue
    finally:
        done.set()
        swapper.join()
    assert (tmp_path / "outside/x.py").read_text() == SECRET
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["x.py"]


NEW = "new file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+z = 1\n"


@pytest.mark.parametrize(
    "path",
    [
        "../outside.py",
        ".git/hooks/pre-commit",
        "deep/.git/hooks/pre-commit",
        ".GIT/hooks/pre-commit",
        ".Git/config",
        ".git ./config",
        "git~1/config",
        ".g\u200cit/config",
        "link/x.py",
        "deep/link/new.py",
        "pointer.py",
        "/tmp/outside.py",
    ],
)
def test_diff_that_leads_out_of_the_folder_or_into_gits_is_refused(
    folder: Path, tmp_path: Path, path: str
) -> None:
    """Also behind a link, in place of one, and into git's folder by another spelling."""
    (folder / "deep").mkdir()
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "deep/link").symlink_to(tmp_path / "outside")
    (folder / "pointer.py").symlink_to(tmp_path / "secret.txt")
    before = {name: name.lstat().st_mtime_ns for name in tmp_path.rglob("*")}
    for diff in (
        f"diff --git a/{path} b/{path}\n" + NEW.format(path),
        NEW.format(path).partition("\n")[2],
        f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{SECRET}\n+z = 1\n",
    ):
        with pytest.raises(PatchError):
            apply(diff, folder, force=True)
    assert {name: name.lstat().st_mtime_ns for name in tmp_path.rglob("*")} == before
    assert (tmp_path / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize(
    "diff",
    [
        "diff --git a/a.py b/b.py\nsimilarity index 100%\nrename from a.py\nrename to b.py\n",
        "diff --git a/a.py b/b.py\nsimilarity index 100%\nrename old a.py\nrename new b.py\n",
        "diff --git a/a.py b/b.py\nsimilarity index 100%\ncopy from a.py\ncopy to b.py\n",
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n",
        "diff --git a/s b/s\nnew file mode 160000\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n"
        "+Subproject commit 0123456789012345678901234567890123456789\n",
        "diff --git a/a.py b/a.py\nold mode 100644\nnew mode 120000\n",
        "diff --git a/a.py b/a.py\nold mode 100644\nnew mode 104755\n",
        unified_diff({}, {"b\nc": "z\n"}),
        "--- /dev/null\n+++ b/\udc80x\n@@ -0,0 +1 @@\n+z\n",
    ],
    ids=[
        "rename",
        "old rename",
        "copy",
        "link",
        "submodule",
        "becomes a link",
        "setuid",
        "newline",
        "half",
    ],
)
def test_diff_that_does_what_no_repair_does_is_refused(folder: Path, diff: str) -> None:
    """A rename would move a file that nobody was asked about; a link leads anywhere."""
    before = sorted(folder.rglob("*"))
    with pytest.raises(PatchError):
        apply(diff, folder, force=True)
    assert sorted(folder.rglob("*")) == before
    assert (folder / "a.py").read_text() == "x = 1\n"


def test_file_that_was_not_sent_is_not_changed(folder: Path) -> None:
    """A diff may know what an ignored file holds, or change its mode without knowing."""
    (folder / ".env").write_text("KEY=1\n")
    for diff in (
        unified_diff({".env": "KEY=1\n"}, {".env": "KEY=2\n"}),
        unified_diff({".env": ""}, {".env": ""}, executable_after=[".env"]),
    ):
        with pytest.raises(PatchError, match=r"\.env would change, and was not sent"):
            apply(diff, folder, force=True, sent=["a.py"])
    assert (folder / ".env").read_text() == "KEY=1\n"
    new = unified_diff({"a.py": "x = 1\n"}, {"a.py": "x = 2\n", "new.py": "y = 1\n"})
    assert apply(new, folder, force=True, sent=["a.py"]) == ["a.py", "new.py"]


@pytest.mark.parametrize(
    "name",
    [
        ".gitattributes",
        "deep/.gitmodules",
        ".vscode/tasks.json",
        ".github/workflows/x.yml",
        "sitecustomize.py",
        ".husky/pre-commit",
        "lib/x.pth",
        ".ENVRC",
    ],
)
def test_file_that_others_start_by_themselves_is_pointed_out(name: str) -> None:
    """The user reads of it before the question."""
    diff = unified_diff({}, {name: "z\n", "b.py": "z\n"})
    assert [name in said and "b.py" not in said for said in cautions(diff, touched(diff))] == [True]


def test_file_that_becomes_executable_is_pointed_out() -> None:
    """A diff that changes lines alone says nothing."""
    assert cautions(unified_diff({"a": "1\n"}, {"a": "2\n"}), ["a"]) == []
    became = unified_diff({"a": "1\n"}, {"a": "1\n"}, executable_after=["a"])
    assert cautions(became, ["a"]) == ["The changes make files executable."]


def full(self: Folder, *args: object) -> None:
    """Write nothing, as on a disk that is full."""
    raise OSError(28, "No space left on device", "c.py")


def test_change_that_fails_in_the_middle_is_taken_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were deleted are there again, new ones and their folders are gone."""
    (folder / "deep").mkdir()
    (folder / "deep/gone.py").write_text("x = 1\n")
    (folder / "c.py").write_text("x = 1\n")
    before = {"deep/gone.py": "x = 1\n", "a.py": "x = 1\n", "c.py": "x = 1\n"}
    after = {"a.py": "x = 2\n", "b/new/n.py": "n = 1\n", "c.py": "x = 2\n"}
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    real: Callable[..., None] = Folder._write

    def write(self: Folder, name: str, *args: object) -> None:
        (full if name == "c.py" else real)(self, name, *args)

    monkeypatch.setattr(Folder, "_write", write)
    with pytest.raises(PatchError, match=r"c\.py cannot be written: No space left"):
        apply(unified_diff(before, after), folder, force=True)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == files
    assert not (folder / "b").exists()


def test_file_that_changed_meanwhile_is_not_overwritten(folder: Path) -> None:
    """What was compared is what is replaced."""
    with Folder(folder) as place:
        before = {"a.py": place.read("a.py", 100), "new.py": None}
        (folder / "new.py").write_text("mine\n")
        with pytest.raises(FileExistsError):
            place.replace({"a.py": Content(b"ours\n"), "new.py": Content(b"ours\n")}, before)
        (folder / "new.py").unlink()
        (folder / "a.py").write_text("mine\n")
        with pytest.raises(OSError, match="changed meanwhile"):
            place.replace({"new.py": Content(b"ours\n"), "a.py": Content(b"ours\n")}, before)
    assert (folder / "a.py").read_text() == "mine\n"
    assert not (folder / "new.py").exists()


@pytest.mark.parametrize(
    "name",
    [".gitignore", ".github/x.yml", "a.git/x", "git/x", "..a", "a..b/c", ".gitx", "x/.gitmodules", "…"],
)
def test_ordinary_name_is_no_refused_one(name: str) -> None:
    """Names that only look like git's, or like a way out."""
    assert refused_name(name) == ""


def test_archive_holds_what_was_read(folder: Path) -> None:
    """Name, text and mode, from the same open file."""
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o700)
    with tarfile.open(fileobj=io.BytesIO(pack(folder, archived=True).archive)) as archive:
        assert {entry.name: (entry.mode, entry.size) for entry in archive} == {
            "a.py": (0o644, 6),
            "run.sh": (0o755, 10),
        }
