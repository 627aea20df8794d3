"""Put a repair's diff into the folder it came from."""

import re
import shutil
import subprocess
from pathlib import Path

_GIT_S = 60
_TOUCHED = re.compile(r"^(?:---|\+\+\+) [ab]/(.+)$", re.MULTILINE)


class PatchError(Exception):
    """The diff was not applied; the folder is as it was."""


def touched(diff: str) -> list[str]:
    """Return the files a diff changes, adds or deletes, sorted."""
    return sorted({path.partition("\t")[0] for path in _TOUCHED.findall(diff)})


def apply(diff: str, folder: Path, *, force: bool = False) -> None:
    """Apply a unified diff to a folder, all of it or nothing.

    Args:
        diff: paths relative to `folder`.
        folder: where to apply it.
        force: also over uncommitted changes.

    Raises:
        PatchError: git is missing, files to change have uncommitted changes, or the diff does not fit.
    """
    git = shutil.which("git")
    if git is None:
        raise PatchError("git is needed to apply the changes, and is not installed.")
    changed = uncommitted(git, folder, touched(diff))
    if changed and not force:
        raise PatchError(
            f"Not applied over uncommitted changes in {', '.join(changed)}: commit them, or give --force."
        )
    for only_check in (["--check"], []):
        done = subprocess.run(
            [git, "apply", "--whitespace=nowarn", *only_check, "-"],
            cwd=folder,
            input=diff.encode(),
            capture_output=True,
            timeout=_GIT_S,
            check=False,
        )
        if done.returncode != 0:
            raise PatchError(
                f"The changes do not fit the files as they are now: {done.stderr.decode().strip()}"
            )


def uncommitted(git: str, folder: Path, paths: list[str]) -> list[str]:
    """Return which of the paths differ from the last commit; none outside of a repository."""
    command = [git, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--", *paths]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=_GIT_S, check=False)
    if done.returncode != 0 or not paths:
        return []
    return sorted(entry[3:].decode("utf-8", "replace") for entry in done.stdout.split(b"\0") if entry)
