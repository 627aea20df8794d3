"""A project's files by name, mode and content: what is compared, restored and patched. Pure."""

import hashlib
import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from agent.errors import SandboxAnswerError
from agent.globs import matches as matches
from agent.repair.ignoring import (
    CACHES,
    DEPENDENCIES,
    IGNORED_FILES,
    VERSION_CONTROL,
    Scope,
    always_ignored,
)

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

MAX_LISTING_BYTES = 16_000_000
MAX_LISTED = 40_000
"""Files of a project, with what its set-up and its tests leave there."""
_MAX_OWN = 20
"""Folders named like dependencies that a command spells out."""
_GLOB, _ESCAPED = re.compile(r"[][*?\\]"), r"\\\g<0>"
_FILE = re.compile(rb"([fl]) ([0-7]{1,6}) ([0-9]{1,15})")
_DIGEST = re.compile(rb"[0-9a-f]{64}")


def entry_of(data: bytes, *, executable: bool = False) -> Entry:
    """Return the entry of a file with this content."""
    return Entry(hashlib.sha256(data).hexdigest(), len(data), executable)


def text_entry(text: str, *, executable: bool = False) -> Entry:
    """Return the entry of a file with this text."""
    return entry_of(text.encode("utf-8", "replace"), executable=executable)


def parsed(listing: bytes, scope: Scope | None = None) -> Tree:
    """Read the tree that `listing_command` wrote; takes a second for a long one.

    Names that are not UTF-8 keep their bytes as surrogates; see `printable`.

    Raises:
        SandboxAnswerError: the command cannot have written it, which whoever works in the sandbox can, or it
            names more files than are looked at.
    """
    # Five ends of fields for each file; counted first, for each field would be an object.
    if listing.count(b"\0") > 5 * MAX_LISTED:
        raise SandboxAnswerError(f"the project has more than {MAX_LISTED} files in the sandbox by now")
    # No name is empty, so the first empty field ends the digests; where there are none it comes first.
    head, _, tail = (b"\0" + listing).partition(b"\0\0")
    hashes: dict[str, str] = {}
    for line in filter(None, head.split(b"\0")):
        hexadecimal, _, file = line.partition(b"  ")
        if _DIGEST.fullmatch(hexadecimal):
            hashes[_name(file)] = hexadecimal.decode()
    found: Tree = {}
    fields = tail.split(b"\0")
    for about, name, target in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        path = _name(name)
        if {"", ".", ".."} & set(path.split("/")):
            raise SandboxAnswerError(f"{FORGED}: it names {printable(path)!r}")
        if scope.ignored(path) if scope else always_ignored(path):
            continue
        if not (said := _FILE.fullmatch(about)):
            raise SandboxAnswerError(f"{FORGED}: it says {about[:60]!r} of {printable(path)!r}")
        link = said[1] == b"l"
        digest = hashlib.sha256(target).hexdigest() if link else hashes.get(path, "")
        found[path] = Entry(digest, int(said[3]), not link and bool(int(said[2], 8) & 0o100), link)
    return found


def _name(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape").removeprefix("./")


def listing_command(to: str, scope: Scope | None = None) -> str:
    """Return a command that lists the current folder's files with modes and digests into the file `to`.

    Args:
        to: the file.
        scope: of the project; without one, folders of dependencies are listed, too.
    """
    names = [f"-name {name}" for name in (*VERSION_CONTROL, *CACHES)]
    folders = " -o ".join([*names, *_pruned(scope)])
    files = "".join(f" ! -name '{pattern}'" for pattern in IGNORED_FILES)
    prune = rf"find . \( -type d \( {folders} \) \) -prune -o"
    return (
        rf"{{ {prune} -type f{files} -print0 | xargs -0r sha256sum -z --; printf '\0'; "
        rf"{prune} \( -type f -o -type l \){files} -printf '%y %m %s\0%p\0%l\0'; }} > {to}"
    )


def _pruned(scope: Scope | None) -> list[str]:
    """Return tests of `find` for the folders of dependencies that are not the project's own."""
    if scope is None:
        return []
    tests = []
    for name in DEPENDENCIES:
        own = [folder for folder in scope.own if posixpath.basename(folder) == name]
        if len(own) > _MAX_OWN or any(folder != printable(folder) for folder in own):
            continue  # all are listed, and `parsed` passes over the others
        but = "".join(f" ! -path {shlex.quote('./' + _GLOB.sub(_ESCAPED, folder))}" for folder in sorted(own))
        tests.append(rf"\( -name {name}{but} \)")
    return tests


def differing(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[str]:
    """Return the paths that are not the same in both, sorted."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def printable(path: str) -> str:
    """Return a path fit for state and messages: bytes that are no text as escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
