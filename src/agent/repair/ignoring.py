"""Which files of a folder are no part of the project, by their names: the one list of them.

It speaks where git does not: of files that no `.gitignore` names, and of folders that git does not track.
A folder that the project was sent with is part of it, whatever it is named. Pure.
"""

import fnmatch
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

VERSION_CONTROL = (".git", ".hg", ".svn")
CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox")
"""Folders that running the tests writes."""
DEPENDENCIES = (".venv", "venv", "node_modules")
"""Folders that an installation fills; a package of the project may have such a name, too."""
IGNORED_FILES = ("*.pyc", ".coverage")

_INSTALLED = frozenset({"pyvenv.cfg", ".package-lock.json", ".yarn-integrity", ".modules.yaml"})
"""What an installation leaves at the top of such a folder, and no package has."""


def always_ignored(path: str) -> bool:
    """Whether a file is version control's or a cache's, in every project."""
    *folders, name = path.split("/")
    return any(folder in VERSION_CONTROL or folder in CACHES for folder in folders) or any(
        fnmatch.fnmatchcase(name, pattern) for pattern in IGNORED_FILES
    )


def dependencies_around(path: str) -> list[str]:
    """Return the folders with a name of `DEPENDENCIES` that a path lies in, outermost first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: at + 1]) for at, part in enumerate(parts) if part in DEPENDENCIES]


def folders_of(path: str) -> list[str]:
    """Return the folders a path lies in, outermost first."""
    found = []
    while path := posixpath.dirname(path):
        found.append(path)
    return found[::-1]


@dataclass(frozen=True, slots=True)
class Scope:
    """What belongs to a project, as it was sent: what is compared, restored and patched."""

    known: frozenset[str] = frozenset()
    """Paths that belong to it, whatever a `.gitignore` says of them."""
    own: frozenset[str] = frozenset()
    """Folders of the project itself that are named like those of dependencies."""

    @classmethod
    def of(cls, paths: Iterable[str]) -> "Scope":
        """Return the scope of a project that was sent with these files.

        A folder of dependencies that was sent along is told from a package by what an installation leaves.
        """
        known = frozenset(paths)
        installed = {posixpath.dirname(path) for path in known if posixpath.basename(path) in _INSTALLED}
        own = {folder for path in known for folder in dependencies_around(path)}
        return cls(known, frozenset(own - installed))

    def also(self, paths: Iterable[str]) -> "Scope":
        """Return the scope with more paths that belong to the project."""
        more = frozenset(paths)
        around = {folder for path in more for folder in dependencies_around(path)}
        return Scope(self.known | more, self.own | around) if more else self

    def ignored(self, path: str) -> bool:
        """Whether a file is left out of every comparison because of its name."""
        return always_ignored(path) or any(folder not in self.own for folder in dependencies_around(path))

    def ignored_folder(self, path: str) -> str:
        """Return the outermost folder that makes a path ignored, or the path where none does."""
        parts = path.split("/")
        for at, part in enumerate(parts[:-1]):
            folder = "/".join(parts[: at + 1])
            if part in (*VERSION_CONTROL, *CACHES) or (part in DEPENDENCIES and folder not in self.own):
                return f"{folder}/"
        return path


def condensed(paths: Iterable[str], besides: Iterable[str]) -> list[str]:
    """Return paths, sorted; a folder with none of the files `besides` stands for all that are in it."""
    ours = {folder for path in besides for folder in folders_of(path)}
    return sorted({next((f"{at}/" for at in folders_of(path) if at not in ours), path) for path in paths})


NO_SCOPE = Scope()
"""Of a folder that nothing was sent to."""
