"""Which files of a folder are sent, and how a diff comes back into it."""

import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from agent.cli.pack import MAX_BYTES, PackError, pack
from agent.cli.patch import PatchError, apply, refuse_uncommitted, touched, uncommitted

DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


def git(folder: Path, *arguments: str) -> None:
    """Run git with an identity of its own."""
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with everything that is to be sent and to be left out."""
    files = {
        ".gitignore": "build/\n*.log\n",
        "a.py": "x = 1\n",
        "tests/test_a.py": "",
        "build/out.py": "no",
        "note.log": "no",
        "deep/.gitignore": "local.txt\n",
        "deep/local.txt": "no",
        "deep/kept.txt": "é\n",
        ".env": "KEY=secret",
        ".env.example": "KEY=",
        ".venv/lib.py": "no",
        "__pycache__/a.pyc": "no",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\x00\xff")
    (tmp_path / "link.py").symlink_to(tmp_path / "a.py")
    return tmp_path


SENT = {".env.example", ".gitignore", "a.py", "deep/.gitignore", "deep/kept.txt", "tests/test_a.py"}


@pytest.mark.parametrize("repository", [False, True])
def test_pack_honours_gitignore_in_a_repository_and_outside(folder: Path, repository: bool) -> None:
    """Ignored files, keys, links and binary files stay; the reasons are told."""
    if repository:
        git(folder, "init", "-q")
        git(folder, "add", "a.py", "-f", ".env")  # even a committed .env may hold a key
    packed = pack(folder)
    assert set(packed.project) == SENT
    assert packed.project["deep/kept.txt"] == "é\n"
    assert packed.left_out == {
        ".env": "may hold keys",
        "link.py": "a link",
        "picture.png": "binary",
    }
    assert not (folder / ".git").exists() or repository


def test_pack_of_a_subfolder_has_paths_relative_to_it(folder: Path) -> None:
    """The rules of the whole repository still count."""
    git(folder, "init", "-q")
    assert set(pack(folder / "deep").project) == {".gitignore", "kept.txt"}


def test_pack_passes_over_files_that_are_deleted_but_still_in_the_index(folder: Path) -> None:
    """What is there counts, not what git remembers."""
    git(folder, "init", "-q")
    git(folder, "add", "a.py")
    (folder / "a.py").unlink()
    (folder / "link.py").unlink()
    assert "a.py" not in pack(folder).project


def test_pack_without_git_passes_over_hidden_and_well_known_folders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Less exact, and still no keys and no environments."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert set(pack(folder).project) == {
        "a.py",
        "build/out.py",
        "deep/kept.txt",
        "deep/local.txt",
        "note.log",
        "tests/test_a.py",
    }


def test_pack_sends_much_text_and_binary_files_as_an_archive(folder: Path) -> None:
    """More than the graph's input holds, or when asked for; executable files stay so, keys stay here."""
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    wanted = pack(folder, archived=True)
    (folder / "big.txt").write_text("x" * (MAX_BYTES + 1))
    for packed in (wanted, pack(folder)):
        assert packed.project == {}
        with tarfile.open(fileobj=io.BytesIO(packed.archive)) as archive:
            entries = {entry.name: entry.mode for entry in archive}
        assert packed.count == len(entries)
        assert {"a.py", "picture.png", "run.sh"} <= entries.keys()
        assert entries["run.sh"] == 0o755
        assert entries["a.py"] == 0o644
        assert packed.left_out == {".env": "may hold keys", "link.py": "a link"}
    assert "big.txt" in entries


def test_pack_states_the_limit_and_the_largest_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user learns what to leave out; nothing that large is read."""
    with (tmp_path / "big.bin").open("wb") as file:
        file.truncate(400_000_000)
    with pytest.raises(PackError, match=r"at most 50,000,000 bytes .*: big\.bin \(400,000,000 bytes\)"):
        pack(tmp_path, archived=True)
    (tmp_path / "big.bin").unlink()
    monkeypatch.setattr("agent.cli.pack.MAX_ARCHIVE_BYTES", 10_000)
    (tmp_path / "noise.bin").write_bytes(os.urandom(20_000))
    with pytest.raises(PackError, match="too large"):
        pack(tmp_path, archived=True)


def test_pack_names_a_file_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sending less than there is, silently, could make another project of it."""
    real = Path.open

    def refused(self: Path, *args: Any, **kwargs: Any) -> Any:
        if self.name == "a.py":
            raise PermissionError(13, "Permission denied")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(PackError, match=r"a\.py cannot be read: Permission denied"):
        pack(folder)


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_pack_of_nothing_is_an_error(tmp_path: Path, name: str) -> None:
    """An empty folder and a missing one are both refused."""
    with pytest.raises(PackError):
        pack(tmp_path / name)


@pytest.mark.parametrize("repository", [False, True])
def test_apply_changes_the_files(folder: Path, repository: bool) -> None:
    """In a repository without uncommitted changes, and outside of any."""
    if repository:
        git(folder, "init", "-q")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "x")
    apply(DIFF, folder)
    assert (folder / "a.py").read_text() == "x = 2\n"


def test_apply_in_a_subfolder_of_a_repository_changes_that_subfolder(folder: Path) -> None:
    """Paths are relative to the folder that was sent."""
    git(folder, "init", "-q")
    (folder / "deep/a.py").write_text("x = 1\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    apply(DIFF, folder / "deep")
    assert (folder / "deep/a.py").read_text() == "x = 2\n"
    assert (folder / "a.py").read_text() == "x = 1\n"


def test_apply_refuses_uncommitted_changes_unless_forced(folder: Path) -> None:
    """Only files that the diff touches count."""
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    (folder / "a.py").write_text("x = 1\ny = 1\n")
    with pytest.raises(PatchError, match=r"uncommitted changes in a\.py"):
        apply(DIFF, folder)
    assert (folder / "a.py").read_text() == "x = 1\ny = 1\n"
    apply("--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -0,0 +1 @@\n+z = 1\n", folder)
    assert (folder / "tests/test_a.py").read_text() == "z = 1\n"


def test_uncommitted_changes_are_refused_before_anything_is_sent(folder: Path) -> None:
    """Of files that are sent; in a subfolder of a repository, too."""
    git(folder, "init", "-q")
    (folder / "deep/a.py").write_text("x = 1\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    refuse_uncommitted(folder / "deep", ["a.py"])
    (folder / "a.py").write_text("y = 1\n")
    refuse_uncommitted(folder / "deep", ["a.py"])
    (folder / "deep/a.py").write_text("y = 1\n")
    with pytest.raises(PatchError, match=r"Nothing was sent: .* in a\.py\. Commit them, .* --force"):
        refuse_uncommitted(folder / "deep", ["a.py"])
    refuse_uncommitted(folder / "deep", ["kept.txt"])


def test_apply_that_does_not_fit_changes_nothing(folder: Path) -> None:
    """Not even the part that would fit."""
    both = DIFF + "--- a/deep/kept.txt\n+++ b/deep/kept.txt\n@@ -1 +1 @@\n-other\n+new\n"
    with pytest.raises(PatchError, match="do not fit"):
        apply(both, folder)
    assert (folder / "a.py").read_text() == "x = 1\n"


def test_touched_names_each_file_once_as_the_folder_has_it(folder: Path) -> None:
    """Also added, deleted and renamed ones, odd names, and in a subfolder of a repository."""
    git(folder, "init", "-q")
    for name in ("old.py", "mode.sh", 'caf\u00e9 "x".py', "deep/[a].py"):
        (folder / name).write_text("x = 1\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    (folder / "old.py").unlink()
    (folder / "mode.sh").chmod(0o755)
    (folder / 'caf\u00e9 "x".py').write_text("x = 2\n")
    (folder / "deep/[a].py").write_text("x = 2\n")
    (folder / "new.py").write_text("y = 1\n")
    git(folder, "add", "-A", "-N")
    command = ["git", "diff", "HEAD"]
    diff = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    named = ['caf\u00e9 "x".py', "deep/[a].py", "mode.sh", "new.py", "old.py"]
    assert touched(diff, folder) == named
    assert uncommitted(folder, named) == named
    assert touched(DIFF, folder / "deep") == ["a.py"]


def test_diff_that_leads_outside_is_refused(folder: Path, tmp_path: Path) -> None:
    """A patch from a server writes into the folder alone, repository or not."""
    outside = "--- /dev/null\n+++ b/../outside.py\n@@ -0,0 +1 @@\n+z = 1\n"
    with pytest.raises(PatchError, match="outside"):
        apply(outside, folder)
    assert not (folder / "../outside.py").exists()


def test_diff_that_is_none_is_refused(folder: Path) -> None:
    """With what git says of it."""
    with pytest.raises(PatchError, match="cannot be read"):
        apply("no diff", folder)


def test_pack_leaves_out_what_has_no_name_in_utf8(folder: Path) -> None:
    """It is named all the same, in a form that can be written."""
    (folder / os.fsdecode(b"caf\xe9.py")).write_text("x = 1\n")
    packed = pack(folder)
    assert packed.left_out["caf\\udce9.py"] == "its name is not UTF-8"
    json.dumps(packed.project).encode()
