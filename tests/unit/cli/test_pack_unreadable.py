"""What cannot be read is said: sending less than there is, silently, could make another project of it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli.pack import PackError, pack

_NOBODY = 65534


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project of a user whom the kernel refuses what the files' modes do not allow: root is none."""
    # Not `tmp_path`: others than its owner may not come near it.
    folder = Path(tempfile.mkdtemp(prefix="unreadable-"))
    for name in ("a.py", "deep/b.py", "build/c.py", "node_modules/d.js"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x = 1\n")
    (folder / ".gitignore").write_text("build/\n")
    monkeypatch.setenv("HOME", str(folder))
    root = os.geteuid() == 0
    if root:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, _NOBODY, _NOBODY)
        try:
            os.seteuid(_NOBODY)
        except OSError:  # a container without that user
            shutil.rmtree(folder)
            pytest.skip("root reads everything, and may be nobody else here")
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o700)
        for path in folder.iterdir():
            path.chmod(0o700)
        shutil.rmtree(folder)


def track(folder: Path) -> None:
    """Make it a repository that has all of it in its index."""
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


@pytest.mark.parametrize("mode", [0o000, 0o444])
@pytest.mark.parametrize("repository", [False, True])
def test_folder_that_cannot_be_read_is_named(folder: Path, repository: bool, mode: int) -> None:
    """In a repository, where git remembers its files, and outside, where git passes over it."""
    if repository:
        track(folder)
    (folder / "deep").chmod(mode)
    with pytest.raises(PackError, match=r"^deep(/b\.py)? cannot be read: Permission denied$"):
        pack(folder)


def test_folder_that_cannot_be_read_and_is_not_tracked_is_named(folder: Path) -> None:
    """A repository's untracked files are sent, so they count."""
    track(folder)
    (folder / "new").mkdir(mode=0o000)
    with pytest.raises(PackError, match=r"^new cannot be read: Permission denied$"):
        pack(folder)


@pytest.mark.parametrize("repository", [False, True])
def test_folder_that_would_not_be_sent_may_be_unreadable(folder: Path, repository: bool) -> None:
    """One that git ignores, and one of dependencies that it does not track."""
    (folder / "node_modules").rename(folder.parent / f"{folder.name}-aside")
    if repository:
        track(folder)
    (folder.parent / f"{folder.name}-aside").rename(folder / "node_modules")
    for name in ("build", "node_modules"):
        (folder / name).chmod(0o000)
    assert set(pack(folder).project) == {".gitignore", "a.py", "deep/b.py"}


@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_project_that_cannot_be_read_is_named(folder: Path, mode: int) -> None:
    """As a whole, too."""
    folder.chmod(mode)
    with pytest.raises(PackError, match=rf"^{folder}(/.*)? cannot be read: Permission denied$"):
        pack(folder)


def test_folder_that_cannot_be_read_is_named_without_git(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plain walk stops there, too."""
    monkeypatch.setattr("agent.cli.listing.find_git", lambda: None)
    (folder / "deep").chmod(0o000)
    with pytest.raises(PackError, match=r"^deep cannot be read: Permission denied$"):
        pack(folder)
