"""Finding files by their names, and lines by what they hold, below a folder."""

from __future__ import annotations

import os
import re
import stat

from agent.globs import compiled
from agent.sandbox.e2b.inside.encodings import SNIFFED_BYTES, Recoded, by_beginning, encoding_of
from agent.sandbox.e2b.inside.entries import openable, readable, resolved, told

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than this program runs
    from collections.abc import Iterator
    from typing import Any

MAX_LINE_CHARS = 400
LEFT_OUT = (".git",)
"""Folders that searches do not enter."""


def find(path: str, root: str, pattern: str, most: int) -> dict[str, Any]:
    """Return the paths below a folder that match a glob pattern."""
    real = resolved(path, root, [])
    wanted = compiled((pattern,))
    unreadable: list[str] = []
    found: list[dict[str, Any]] = []
    total = 0
    for name, entry in walked(real, unreadable):
        if wanted.match(name.split("/")):
            total += 1
            if len(found) < most:
                found.append(told(name, entry))
    return {"entries": found, "total": total, "unreadable": [readable(name) for name in unreadable[:20]]}


def search(
    path: str,
    root: str,
    also: list[str],
    pattern: str,
    only: str | None,
    ignore_case: bool,
    most: int,
    room: int,
) -> dict[str, Any]:
    """Return the lines that match a regular expression, in a file or below a folder."""
    try:
        wanted = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except re.error as exc:
        raise ValueError(f"the pattern is not a regular expression: {exc}") from None
    real = openable(path, root, also)
    unreadable: list[str] = []
    matches: list[dict[str, Any]] = []
    count = searched = binary = 0
    for name, whole in files_below(real, only, unreadable):
        try:
            found = lines_with(wanted, whole, most)
            if found is None:
                binary += 1
                continue
            searched += 1
            count += found[0]
            for number, text in found[1]:
                room -= len(text.encode()) + len(os.fsencode(name)) + 10
                if len(matches) < most and room > 0:
                    matches.append({"path": readable(name), "line": number, "text": text})
        except OSError:
            unreadable.append(name)
    return {
        "matches": matches,
        "total": count,
        "searched": searched,
        "binary": binary,
        "unreadable": [readable(name) for name in unreadable[:20]],
    }


def lines_with(wanted: Any, path: str, most: int) -> tuple[int, list[tuple[int, str]]] | None:
    """Return how many lines of a file match, and the first of them; None where it is no text."""
    with open(path, "rb") as file:
        begin = file.read(SNIFFED_BYTES)
        encoding = by_beginning(begin, len(begin) == SNIFFED_BYTES)
        if encoding is None:
            return None
        try:
            # Most files are UTF-8: whether one is shows as it is read.
            source = Recoded(file, encoding, lenient=encoding.codec != "utf-8")
            return found_in(source, wanted, most)
        except UnicodeDecodeError:
            pass
    with open(path, "rb") as file:
        encoding = encoding_of(file)
        if encoding is None:
            return None
        source = Recoded(file, encoding)
        return found_in(source, wanted, most)


def found_in(source: Recoded, wanted: Any, most: int) -> tuple[int, list[tuple[int, str]]]:
    """Return how many lines match, and the first of them: number and text, without its end."""
    count = 0
    found: list[tuple[int, str]] = []
    for number, line in enumerate(source.text, 1):
        bare = line[:-1] if line.endswith("\n") else line
        bare = bare[:-1] if bare.endswith("\r") else bare
        if wanted.search(bare) or (bare != line and wanted.search(line)):
            count += 1
            if len(found) < most:
                shown = bare if len(bare) <= MAX_LINE_CHARS else bare[: MAX_LINE_CHARS - 1] + "…"
                found.append((number, shown))
    return count, found


def files_below(real: str, only: str | None, unreadable: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the files to search: their names for the answer, and where they are."""
    if not stat.S_ISDIR(os.stat(real).st_mode):
        yield "", real
        return
    wanted = compiled((only,)) if only else None
    for name, entry in walked(real, unreadable):
        if entry.is_file(follow_symlinks=False) and (wanted is None or wanted.match(name.split("/"))):
            yield name, entry.path


def walked(real: str, unreadable: list[str], below: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what lies below a folder, by name; links are not followed, and unreadable folders noted."""
    try:
        with os.scandir(os.path.join(real, below)) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        if not below:
            raise
        unreadable.append(below)
        return
    for entry in entries:
        name = below + entry.name
        yield name, entry
        if entry.is_dir(follow_symlinks=False) and entry.name not in LEFT_OUT:
            yield from walked(real, unreadable, name + "/")
