"""Which files of a folder are the project's: git says, wherever it is installed.

What git tracks is, whatever its name; what it does not track is, where no rule ignores it and the one list of
caches and dependencies does not name it. What is passed over so is told, but for what git ignores.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from agent.cli.folder import STAGE, Folder, refused_name
from agent.cli.git import Git, GitError, find_git, in_repository
from agent.repair.ignoring import NO_SCOPE

NOT_TRACKED = "caches or dependencies, and not tracked by git"
_HIDDEN = "hidden, and git is not there to say more"
_OURS = "where changes are put together"
_MAX_SUBMODULES = 100


def listed(path: Path) -> tuple[set[str], dict[str, str]]:
    """Return the names of a folder's files that are the project's, and what is passed over with the reason.

    A submodule that is checked out is listed as its own repository has it.

    Raises:
        GitError: git cannot tell.
        OSError: a folder that counts cannot be read.
    """
    names, passed_over = _walked(path) if find_git() is None else _tracked_and_new(path, [_MAX_SUBMODULES])
    if ours := {name for name in names if name.split("/")[0] == STAGE}:
        passed_over[f"{STAGE}/"] = _OURS
    return names - ours, passed_over


def _tracked_and_new(path: Path, room: list[int]) -> tuple[set[str], dict[str, str]]:
    with in_repository(path) as git:
        names = _names(git, "--cached")
        scope = NO_SCOPE.also(names)
        new = _names(git, "--others", "--exclude-standard")
    passed_over: dict[str, str] = {}
    for name in new:
        if name.endswith("/"):  # git does not look into it
            passed_over[name] = "a repository of its own"
        elif scope.ignored(name):
            passed_over[scope.ignored_folder(name)] = NOT_TRACKED
        else:
            names.add(name)
    for name in _submodules(path, names):
        names.remove(name)
        if not os.path.lexists(path / name / ".git"):
            passed_over[f"{name}/"] = "a submodule that is not checked out"
            continue
        room[0] -= 1
        if room[0] < 0:
            raise GitError(f"{path} has more than {_MAX_SUBMODULES} submodules.")
        try:
            inner, besides = _tracked_and_new(path / name, room)
        except GitError as exc:
            passed_over[f"{name}/"] = f"a submodule that cannot be read: {exc}"
            continue
        names |= {f"{name}/{each}" for each in inner}
        passed_over |= {f"{name}/{each}": why for each, why in besides.items()}
    return names, passed_over


def _submodules(path: Path, names: set[str]) -> list[str]:
    """Return those of the names that are folders: in git's index only a submodule's is."""
    found = []
    with Folder(path) as folder:
        for name in sorted(names):
            with suppress(OSError):  # who reads it will say so
                if not refused_name(name) and folder.kind(name)[0] == "not a file" and (path / name).is_dir():
                    found.append(name)
    return found


def _names(git: Git, *which: str) -> set[str]:
    answer = git.run("ls-files", "-z", *which, "--", ".")
    if answer.returncode != 0:
        raise GitError(f"git cannot list the files of {git.folder}: {answer.said}")
    if answer.stderr:  # it passes over what it cannot read, with a warning
        _refuse_unreadable(git)
    return set(answer.names)


def _refuse_unreadable(git: Git) -> None:
    """Raise the error of the first folder that cannot be read, unless git would not look into it anyway."""
    errors: dict[str, OSError] = {}

    def keep(error: OSError) -> None:
        errors[os.path.relpath(error.filename, git.folder)] = error

    for _, folders, _ in os.walk(git.folder, onerror=keep):
        folders[:] = [name for name in folders if not NO_SCOPE.ignored(f"{name}/x")]
    if not errors:
        return
    asked = b"".join(os.fsencode(name) + b"\0" for name in errors)
    answer = git.run("check-ignore", "-z", "--stdin", stdin=asked)
    ignored = answer.names if answer.returncode == 0 else []
    for name, error in errors.items():
        if name not in ignored:
            raise error


def _walked(path: Path) -> tuple[set[str], dict[str, str]]:
    """Return what `listed` does, for want of git: without what is hidden, caches and dependencies."""
    names: set[str] = set()
    passed_over: dict[str, str] = {}
    for at, folders, files in os.walk(path, onerror=_raise):
        inner = {name for name in folders if not Path(at, name).is_symlink()}
        for name in (*folders, *files):
            whole = Path(at, name).relative_to(path).as_posix()
            shown = f"{whole}/" if name in inner else whole
            if NO_SCOPE.ignored(f"{shown}x" if name in inner else whole):
                passed_over[shown] = NOT_TRACKED
            elif name.startswith("."):
                passed_over[shown] = _HIDDEN
            elif name not in inner:
                names.add(whole)
        folders[:] = [
            name for name in inner if f"{Path(at, name).relative_to(path).as_posix()}/" not in passed_over
        ]
    return names, passed_over


def _raise(error: OSError) -> NoReturn:
    raise error
