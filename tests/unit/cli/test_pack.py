"""Which files of a folder are sent."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from agent.cli.folder import Content, Folder
from agent.cli.pack import MAX_BYTES, PackError, pack
from support.git import git


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
    (tmp_path / "link.py").symlink_to(tmp_path / "a.py")
    return tmp_path


LEFT_OUT = {
    ".env": "may hold keys",
    ".venv/": "caches or dependencies, and not tracked by git",
    "__pycache__/": "caches or dependencies, and not tracked by git",
    "link.py": "a link out of the folder",
}
SENT = {".env.example", ".gitignore", "a.py", "deep/.gitignore", "deep/kept.txt", "tests/test_a.py"}


@pytest.mark.parametrize("repository", [False, True])
def test_pack_honours_gitignore_in_a_repository_and_outside(folder: Path, repository: bool) -> None:
    """Ignored files, keys, caches and links out of the folder stay; the reasons are told."""
    if repository:
        git(folder, "init", "-q")
        git(folder, "add", "a.py", "-f", ".env")  # even a committed .env may hold a key
    packed = pack(folder)
    assert set(packed.project) == SENT
    assert packed.project["deep/kept.txt"] == "é\n"
    assert packed.left_out == LEFT_OUT
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
    """Less exact, and still no keys and no environments; it is told."""
    monkeypatch.setattr("agent.cli.listing.find_git", lambda: None)
    packed = pack(folder)
    assert packed.left_out == {
        ".env": "hidden, and git is not there to say more",
        ".env.example": "hidden, and git is not there to say more",
        ".gitignore": "hidden, and git is not there to say more",
        ".venv/": "caches or dependencies, and not tracked by git",
        "__pycache__/": "caches or dependencies, and not tracked by git",
        "deep/.gitignore": "hidden, and git is not there to say more",
        "link.py": "a link out of the folder",
    }
    assert set(packed.project) == {
        "a.py",
        "build/out.py",
        "deep/kept.txt",
        "deep/local.txt",
        "note.log",
        "tests/test_a.py",
    }


def test_pack_sends_much_text_and_binary_files_as_an_archive(folder: Path) -> None:
    """More than the graph's input holds, or when asked for; executable files stay so, keys stay here."""
    (folder / "picture.png").write_bytes(b"\x89PNG\x00\xff")
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
        assert packed.left_out == LEFT_OUT
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
    real = Folder.read

    def refused(self: Folder, name: str, limit: int) -> Content:
        if name == "a.py":
            raise PermissionError(13, "Permission denied")
        return real(self, name, limit)

    monkeypatch.setattr(Folder, "read", refused)
    with pytest.raises(PackError, match=r"a\.py cannot be read: Permission denied"):
        pack(folder)


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_pack_of_nothing_is_an_error(tmp_path: Path, name: str) -> None:
    """An empty folder and a missing one are both refused."""
    with pytest.raises(PackError):
        pack(tmp_path / name)
