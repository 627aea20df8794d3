"""Put a repair's diff into the folder it came from."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_GIT_S = 60
_NAMED = 5


class PatchError(Exception):
    """The diff was not applied; the folder is as it was."""


def touched(diff: str, folder: Path) -> list[str]:
    """Return the files a diff changes, adds or deletes, relative to the folder it is for, sorted.

    Raises:
        PatchError: git is missing, or cannot read the diff, or finds no file in it.
    """
    place = _place(folder)
    done = _apply(place, "--numstat", diff=diff)
    if done.returncode != 0:
        raise PatchError(f"The changes cannot be read: {_said(done)}")
    return _named(done, place)


def apply(diff: str, folder: Path, *, force: bool = False) -> list[str]:
    """Apply a unified diff to a folder, all of it or nothing.

    Args:
        diff: paths relative to `folder`.
        folder: where to apply it; in a repository or not, its root or not.
        force: also over uncommitted changes.

    Returns:
        The files that were changed, added or deleted, relative to `folder`, sorted; never none.

    Raises:
        PatchError: git is missing, files to change have uncommitted changes, or the diff does not fit.
    """
    changed = uncommitted(folder, touched(diff, folder))
    if changed and not force:
        raise PatchError(
            f"Not applied over uncommitted changes in {', '.join(changed)}: commit them, or give --force."
        )
    place = _place(folder)
    # `git apply` by itself changes all files or none; this way it names what it has changed, too.
    done = _apply(place, "--numstat", "--apply", diff=diff)
    if done.returncode != 0:
        raise PatchError(f"The changes do not fit the files as they are now: {_said(done)}")
    return _named(done, place)


def refuse_uncommitted(folder: Path, paths: Sequence[str]) -> None:
    """Refuse a repair that is to be applied to files with uncommitted changes, before it begins.

    Args:
        folder: where the changes are to be applied.
        paths: what is sent, and may so be changed.

    Raises:
        PatchError: git is missing, or some of the files have uncommitted changes.
    """
    # All of the folder is asked about: thousands of paths do not fit on a command line.
    if changed := sorted(set(uncommitted(folder, ["."])) & set(paths)):
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        raise PatchError(
            f"Nothing was sent: --apply would change {folder}, and there are uncommitted changes in "
            f"{', '.join(changed[:_NAMED])}{more}. Commit them, leave out --apply, or give --force."
        )


def uncommitted(folder: Path, paths: Sequence[str]) -> list[str]:
    """Return which of the paths differ from the last commit; none outside of a repository.

    Args:
        folder: what the paths are relative to.
        paths: files, or folders with all that is in them.
    """
    if not paths:
        return []
    place = _place(folder)
    options = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
    done = _git(place.root, "status", *options, "--", *(place.prefix + path for path in paths))
    if done.returncode != 0:
        return []
    return sorted(place.relative(entry[3:]) for entry in done.stdout.split(b"\0") if entry)


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder as git sees it: from `root` it is `prefix`, which is empty or ends in a slash."""

    root: Path
    prefix: str = ""

    def relative(self, name: bytes) -> str:
        """Return a name of git's, relative to the folder."""
        return os.fsdecode(name).removeprefix(self.prefix)


def _place(folder: Path) -> _Place:
    # From a subfolder git would take the paths of a `diff --git` for the root's, and pass over all of them.
    root, prefix = (_git(folder, "rev-parse", option) for option in ("--show-toplevel", "--show-prefix"))
    if root.returncode != 0 or prefix.returncode != 0:  # no repository, or none with files
        return _Place(folder)
    return _Place(
        Path(os.fsdecode(root.stdout.removesuffix(b"\n"))), os.fsdecode(prefix.stdout.removesuffix(b"\n"))
    )


def _apply(place: _Place, *options: str, diff: str) -> subprocess.CompletedProcess[bytes]:
    inside = [f"--directory={place.prefix}"] if place.prefix else []
    return _git(place.root, "apply", "-z", "--whitespace=nowarn", *inside, *options, "-", diff=diff)


def _named(done: subprocess.CompletedProcess[bytes], place: _Place) -> list[str]:
    entries = [entry for entry in done.stdout.split(b"\0") if entry]
    if not entries:
        raise PatchError(f"git finds no file in the changes; nothing was changed in {place.root}.")
    return sorted(place.relative(entry.split(b"\t", 2)[2]) for entry in entries)


def _git(folder: Path, *arguments: str, diff: str = "") -> subprocess.CompletedProcess[bytes]:
    git = shutil.which("git")
    if git is None:
        raise PatchError("git is needed to apply the changes, and is not installed.")
    # Paths are names here, not patterns.
    command = [git, "--literal-pathspecs", *arguments]
    return subprocess.run(
        command, cwd=folder, input=diff.encode(), capture_output=True, timeout=_GIT_S, check=False
    )


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode("utf-8", "replace").strip()
