"""Changes are put into a folder as a whole: killed, interrupted, at once, on a full disk, as root."""

import errno
import multiprocessing
import os
import resource
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agent.cli.folder import STAGE, Content, Folder
from agent.cli.pack import pack
from agent.cli.patch import PatchError, apply, refuse_uncommitted
from agent.repair.diff import unified_diff

NAMES = [f"d{number % 3}/f{number}.py" for number in range(9)]
OLD = dict.fromkeys(NAMES, "x = 1\n")
NEW = dict.fromkeys(NAMES[2:], "x = 2\n") | {"new/n.py": "n = 1\n"}
DIFF = unified_diff(OLD, NEW)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in no repository."""
    made = tmp_path / "project"
    fill(made)
    return made


def fill(folder: Path) -> None:
    """Write the files as they were."""
    for name, text in OLD.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def held(folder: Path) -> dict[str, str]:
    """Return all that a folder holds."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def at_step(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], None]) -> None:
    """Have something happen after so many files were put into place or deleted."""
    real: Callable[..., None] = Folder._write
    steps = iter(range(1, 1000))

    def write(self: Folder, *args: object) -> None:
        real(self, *args)
        if next(steps) == number:
            act()

    monkeypatch.setattr(Folder, "_write", write)


def ctrl_c_twice() -> None:
    """Press it, and once more."""
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("number", [1, 5, 9])
def test_ctrl_c_does_not_leave_a_half_of_the_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """What was begun is carried out, and then the command ends."""
    at_step(monkeypatch, number, ctrl_c_twice)
    with pytest.raises(KeyboardInterrupt):
        apply(DIFF, folder)
    assert held(folder) == NEW


def killed_at(number: int, folder: Path) -> None:
    """Be killed in the midst of it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        at_step(monkeypatch, number, lambda: os.kill(os.getpid(), signal.SIGKILL))
        apply(DIFF, folder)


@pytest.mark.parametrize("number", [1, 5, 9])
def test_files_of_a_change_that_was_killed_are_kept_as_they_were(folder: Path, number: int) -> None:
    """They are not sent, nothing is applied over them, and what was there can be put back."""
    child = multiprocessing.get_context("fork").Process(target=killed_at, args=(number, folder))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert not any(name.startswith(STAGE) for name in pack(folder).project)
    with pytest.raises(PatchError, match=f"{STAGE} cannot be written: it is there already"):
        apply(DIFF, folder)
    with pytest.raises(PatchError, match=f"Nothing was sent: {STAGE}"):
        refuse_uncommitted(folder, NAMES)
    (folder / "new/n.py").unlink(missing_ok=True)
    kept = folder / STAGE / "before"
    for path in [each for each in kept.rglob("*") if each.is_file()]:
        path.replace(folder / path.relative_to(kept))
    shutil.rmtree(folder / STAGE)
    assert {name: text for name, text in held(folder).items() if text} == OLD


def test_of_two_that_apply_at_once_one_does(folder: Path) -> None:
    """The other is refused, and changes nothing."""

    def one(number: int) -> None:
        new = dict.fromkeys(NAMES, f"x = {number}\n")
        with suppress(PatchError):
            apply(unified_diff(OLD, new), folder)

    for _ in range(5):
        fill(folder)
        children = [multiprocessing.get_context("fork").Process(target=one, args=(each,)) for each in (2, 3)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        assert set(held(folder).values()) in ({"x = 2\n"}, {"x = 3\n"})
        assert not (folder / STAGE).exists()


def test_change_that_finds_no_room_changes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that takes room is written before the first file is changed."""

    at_step(monkeypatch, 1, lambda: os._exit(1))

    def change() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with Folder(folder) as place:
            before: dict[str, Content | None] = {name: place.read(name, 100) for name in NAMES}
            after: dict[str, Content | None] = {NAMES[0]: None, NAMES[1]: Content(b"x = 2\n")}
            after[NAMES[2]] = Content(b"x" * 2000)
            with pytest.raises(OSError, match="too large"):
                place.replace(after, before)

    child = multiprocessing.get_context("fork").Process(target=change)
    child.start()
    child.join()
    assert child.exitcode == 0
    assert held(folder) == OLD
    assert not (folder / STAGE).exists()


def test_taking_changes_back_takes_no_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that were changed are the same again, not copies."""
    nodes = {name: (folder / name).stat().st_ino for name in NAMES}

    def fail() -> None:
        raise OSError(28, "No space left on device")

    at_step(monkeypatch, 5, fail)
    with pytest.raises(PatchError, match="No space left"):
        apply(DIFF, folder)
    assert held(folder) == OLD
    assert {name: (folder / name).stat().st_ino for name in NAMES} == nodes


def test_change_across_file_systems_is_made_and_taken_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a folder of the project is mounted from elsewhere, nothing can be moved or linked."""

    def elsewhere(source: str, target: str, **folders: int) -> None:
        if folders["src_dir_fd"] != folders["dst_dir_fd"]:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        real(source, target, **folders)

    real = os.rename
    monkeypatch.setattr(os, "rename", elsewhere)
    monkeypatch.setattr(os, "link", elsewhere)
    at_step(monkeypatch, 9, lambda: (folder / "fails").rmdir())
    with pytest.raises(PatchError, match="cannot be written"):
        apply(DIFF, folder)
    assert held(folder) == OLD
    apply(DIFF, folder)
    assert held(folder) == NEW


def test_file_keeps_its_owner_where_root_changes_it(folder: Path) -> None:
    """As in a container that works on a user's folder; others own what they write."""
    owner = 12345 if os.geteuid() == 0 else os.geteuid()
    for name in NAMES:
        os.chown(folder / name, owner, -1)
    apply(DIFF, folder)
    assert {(folder / name).stat().st_uid for name in NAMES[2:]} == {owner}


@pytest.mark.parametrize("stage", [STAGE, STAGE.upper()])
def test_diff_into_the_place_where_changes_are_put_together_is_refused(folder: Path, stage: str) -> None:
    """It would be lost; also where the file system takes capitals for the same."""
    with pytest.raises(PatchError, match="is where changes are put together"):
        apply(unified_diff({}, {f"{stage}/before/x.py": "1\n"}), folder)
