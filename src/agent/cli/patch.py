"""Put a repair's diff into the folder it came from."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

_GIT_S = 60
_NAMED = 5


class PatchError(Exception):
    """The diff was not applied; the folder is as it was."""


def touched(diff: str, folder: Path) -> list[str]:
    """Return the files a diff changes, adds or deletes, relative to the folder it is for, sorted.

    Raises:
        PatchError: git is missing, or cannot read the diff.
    """
    done = _git(folder, "apply", "--numstat", "-z", "-", diff=diff)
    if done.returncode != 0:
        raise PatchError(f"The changes cannot be read: {_said(done)}")
    entries = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    # In a repository git names files from its root, whatever folder it is asked in.
    root = _prefix(folder)
    return sorted(entry.split("\t", 2)[2].removeprefix(root) for entry in entries if entry)


def apply(diff: str, folder: Path, *, force: bool = False) -> None:
    """Apply a unified diff to a folder, all of it or nothing.

    Args:
        diff: paths relative to `folder`.
        folder: where to apply it.
        force: also over uncommitted changes.

    Raises:
        PatchError: git is missing, files to change have uncommitted changes, or the diff does not fit.
    """
    changed = uncommitted(folder, touched(diff, folder))
    if changed and not force:
        raise PatchError(
            f"Not applied over uncommitted changes in {', '.join(changed)}: commit them, or give --force."
        )
    # `git apply` by itself changes all files or none.
    done = _git(folder, "apply", "--whitespace=nowarn", "-", diff=diff)
    if done.returncode != 0:
        raise PatchError(f"The changes do not fit the files as they are now: {_said(done)}")


def refuse_uncommitted(folder: Path, paths: Sequence[str]) -> None:
    """Refuse a repair that is to be applied to files with uncommitted changes, before it begins.

    Args:
        folder: where the changes are to be applied.
        paths: what is sent, and may so be changed.

    Raises:
        PatchError: git is missing, or some of the files have uncommitted changes.
    """
    # All of the folder is asked about: thousands of paths do not fit on a command line.
    there = {path.removeprefix(_prefix(folder)) for path in uncommitted(folder, ["."])}
    if changed := sorted(there & set(paths)):
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        raise PatchError(
            f"Nothing was sent: --apply would change {folder}, and there are uncommitted changes in "
            f"{', '.join(changed[:_NAMED])}{more}. Commit them, leave out --apply, or give --force."
        )


def uncommitted(folder: Path, paths: Sequence[str]) -> list[str]:
    """Return which of the paths differ from the last commit; none outside of a repository."""
    if not paths:
        return []
    options = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
    done = _git(folder, "status", *options, "--", *paths)
    if done.returncode != 0:
        return []
    return sorted(entry[3:].decode("utf-8", "replace") for entry in done.stdout.split(b"\0") if entry)


def _prefix(folder: Path) -> str:
    done = _git(folder, "rev-parse", "--show-prefix")
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


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
