"""The one dialect of globs: of the tools that search, and of the files that a repair protects.

`*` and `?` are any characters or one of a name, `[ab]` and `[!ab]` one of these or none of them; `**` is any
folders or none, and at a glob's end all that is in a folder. A glob without a slash is one of a name, in
whatever folder; `name/` is all that is in folders of that name; `/name` is in the outermost folder alone.

It is also sent into sandboxes: the standard library only, any Python from 3.8.
"""

from __future__ import annotations

import fnmatch
import functools
import re

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than some programs that use this run
    from collections.abc import Iterable


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether a path, relative and with slashes, matches one of the globs; takes steps as both grow."""
    return compiled(tuple(patterns)).match(path.split("/"))


def parts_of_glob(pattern: str) -> list[str]:
    """Return a glob's parts, each of which stands for one part of a path, or `**` for any number of them."""
    anchored = pattern.startswith(("/", "./"))
    while pattern.startswith(("/", "./")):
        pattern = pattern[pattern.index("/") + 1 :]
    parts = pattern.split("/")
    if parts[-1] == "" and len(parts) > 1:
        parts[-1] = "**"
    of_a_name = len(parts) == 1 or (len(parts) == 2 and pattern.endswith("/"))
    if of_a_name and not anchored and parts[0] != "**":
        parts.insert(0, "**")
    # As many in a row are one; a `^` after a bracket means what `!` does, as shells have it.
    kept = [part for at, part in enumerate(parts) if part != "**" or parts[at - 1 : at] != ["**"]]
    return [part.replace("[^", "[!") for part in kept]


class Globs:
    """Globs, those of the usual kinds put together: a step may have touched every file of a project.

    Args:
        patterns: the globs.
    """

    def __init__(self, patterns: tuple[str, ...]) -> None:
        names: list[str] = []
        folders: set[str] = set()
        self.others: list[list[str]] = []
        for parts in map(parts_of_glob, patterns):
            if len(parts) == 2 and parts[0] == "**" != parts[1]:
                names.append(fnmatch.translate(parts[1]))
            elif len(parts) == 3 and (parts[0], parts[2]) == ("**", "**") and not set("*?[") & set(parts[1]):
                folders.add(parts[1])
            else:
                self.others.append(parts)
        # No name is matched where there is no glob for one.
        self.names = re.compile("|".join(names) or "(?!)")
        self.folders = frozenset(folders)

    def match(self, parts: list[str]) -> bool:
        """Whether a path, in its parts, matches one of them."""
        if self.names.match(parts[-1]) or not self.folders.isdisjoint(parts[:-1]):
            return True
        return any(all_match(parts, pattern) for pattern in self.others)


compiled = functools.lru_cache(maxsize=64)(Globs)


def all_match(parts: list[str], pattern: list[str]) -> bool:
    """Whether the parts match; after each part it is known how much of the pattern may be behind it.

    Tried one by one, the ways to share parts out among several `**` would be too many to try.
    """
    last = len(pattern) - 1
    reached = {0}
    for part in parts:
        # A `**` in the middle may stand for no part; the last one stands for one at least.
        for at in sorted(reached):
            while at < last and pattern[at] == "**":
                at += 1
                reached.add(at)
        reached = {
            after
            for at in reached
            if at <= last
            for after in ((at, at + 1) if pattern[at] == "**" else (at + 1,))
            if pattern[at] == "**" or fnmatch.fnmatchcase(part, pattern[at])
        }
    return last + 1 in reached
