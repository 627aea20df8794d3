"""A project's files by name, mode and content: what is compared, restored and patched. Pure."""

import fnmatch
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent.errors import SandboxError

CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox")
"""Folders that running the tests writes."""
IGNORED_FOLDERS = (*CACHES, ".git", ".hg", ".svn", ".venv", "venv", "node_modules")
"""Caches, dependencies and version control: no part of a patch, whatever happens in them."""
IGNORED_FILES = ("*.pyc", ".coverage")

PROTECTED = (
    "**/tests/**", "**/test/**", "**/__tests__/**", "**/spec/**", "**/test_*.py", "**/*_test.py",
    "**/conftest.py", "**/*.test.[jt]s*", "**/*.spec.[jt]s*", "**/*.test.mjs", "**/*_test.go", "**/*_spec.rb",
    "**/*Test.java", "**/*Tests.cs", "**/test.sh", "**/test_*.sh", "**/*_test.sh", "**/*.bats",
)  # fmt: skip
"""Tests, where many languages keep them: changing one could turn the tests green and mend nothing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: what it holds and how."""

    sha256: str
    """Of the content; of the target where it is a link; empty where it could not be read."""
    size_bytes: int
    executable: bool = False
    link: bool = False


FORGED = "the sandbox's list of the project's files was forged or cut short"

Tree = dict[str, Entry]
"""Relative path → file, without what is ignored."""


def ignored(path: str) -> bool:
    """Whether a file is left out of every comparison."""
    *folders, name = path.split("/")
    return any(folder in IGNORED_FOLDERS for folder in folders) or any(
        fnmatch.fnmatchcase(name, pattern) for pattern in IGNORED_FILES
    )


def text_entry(text: str, *, executable: bool = False) -> Entry:
    """Return the entry of a file with this text."""
    data = text.encode("utf-8", "replace")
    return Entry(hashlib.sha256(data).hexdigest(), len(data), executable)


def tree_of(texts: Mapping[str, str]) -> Tree:
    """Return the tree that files (path → text) make."""
    return {path: text_entry(text) for path, text in texts.items() if not ignored(path)}


def parsed(listing: bytes) -> Tree:
    """Read the tree that `listing_command` wrote.

    Names that are not UTF-8 keep their bytes as surrogates; see `printable`.

    Raises:
        SandboxError: the command cannot have written it; whoever works in the sandbox can.
    """
    # No name is empty, so the first empty field ends the digests; where there are none it comes first.
    head, _, tail = (b"\0" + listing).partition(b"\0\0")
    hashes: dict[str, str] = {}
    for line in filter(None, head.split(b"\0")):
        hexadecimal, _, file = line.partition(b"  ")
        hashes[_name(file)] = hexadecimal.decode()
    found: Tree = {}
    fields = tail.split(b"\0")
    for about, name, target in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        path = _name(name)
        if {"", ".", ".."} & set(path.split("/")):
            raise SandboxError(f"{FORGED}: it names {printable(path)!r}")
        if ignored(path):
            continue
        try:
            kind, mode, size = about.split(b" ")
            link = kind == b"l"
            digest = hashlib.sha256(target).hexdigest() if link else hashes.get(path, "")
            found[path] = Entry(digest, int(size), not link and bool(int(mode, 8) & 0o100), link)
        except ValueError:
            raise SandboxError(f"{FORGED}: it says {about[:60]!r} of {printable(path)!r}") from None
    return found


def _name(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape").removeprefix("./")


def listing_command(to: str) -> str:
    """Return a command that lists the current folder's files with modes and digests into the file `to`."""
    folders = " -o ".join(f"-name {name}" for name in IGNORED_FOLDERS)
    files = "".join(f" ! -name '{pattern}'" for pattern in IGNORED_FILES)
    prune = rf"find . \( -type d \( {folders} \) \) -prune -o"
    return (
        rf"{{ {prune} -type f{files} -print0 | xargs -0r sha256sum -z --; printf '\0'; "
        rf"{prune} \( -type f -o -type l \){files} -printf '%y %m %s\0%p\0%l\0'; }} > {to}"
    )


def differing(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[str]:
    """Return the paths that are not the same in both, sorted."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether a path matches one of the globs: `**/` is any folders or none, `*` stays within a name."""
    return any(_match(path.split("/"), pattern.split("/")) for pattern in patterns)


def _match(parts: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        if len(pattern) == 1:
            return bool(parts)
        return any(_match(parts[start:], pattern[1:]) for start in range(len(parts)))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], pattern[0]) and _match(parts[1:], pattern[1:])


def printable(path: str) -> str:
    """Return a path fit for state and messages: bytes that are no text as escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
