"""Finding files by their names, and lines by what they hold, below a folder."""

from __future__ import annotations

import io
import os
import re
import stat

from agent.sandbox.e2b.inside.entries import (
    SNIFFED_BYTES,
    decoded,
    openable,
    readable,
    resolved,
    told,
)
from agent.sandbox.e2b.inside.spool import whole_characters
from agent.sandbox.e2b.inside.texts import MAX_RECODED_BYTES, UTF_8, encoding_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than this program runs
    from collections.abc import Iterator
    from typing import Any

LEFT_OUT = (".git",)
"""Folders that searches do not enter."""
GLOB = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def find(path: str, root: str, pattern: str, most: int) -> dict[str, Any]:
    """Return the paths below a folder that match a glob pattern."""
    real = resolved(path, root, [])
    wanted = re.compile(translated(pattern), re.DOTALL)
    unreadable: list[str] = []
    found: list[dict[str, Any]] = []
    total = 0
    for name, entry in walked(real, unreadable):
        if wanted.fullmatch(name):
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
        wanted = re.compile(pattern.encode(), re.IGNORECASE if ignore_case else 0)
    except re.error as exc:
        raise ValueError(f"the pattern is not a regular expression: {exc}") from None
    real = openable(path, root, also)
    unreadable: list[str] = []
    matches: list[dict[str, Any]] = []
    count = searched = binary = 0
    for name, whole in files_below(real, only, unreadable):
        try:
            with open(whole, "rb") as file:
                lines = text_lines(file)
                if lines is None:
                    binary += 1
                    continue
                searched += 1
                for number, line in enumerate(lines, 1):
                    if not wanted.search(line):
                        continue
                    count += 1
                    text = decoded(whole_characters(line.rstrip(b"\r\n")[:400]))
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


def text_lines(file: Any) -> Any:
    """Return the lines of an open file in UTF-8, without a byte order mark; None where it is no text."""
    found = encoding_of(file.read(SNIFFED_BYTES), goes_on=True)
    if found is None:
        return None
    encoding, mark = found
    file.seek(len(mark))
    if encoding == UTF_8:
        return file
    data = file.read(MAX_RECODED_BYTES + 1)
    if len(data) > MAX_RECODED_BYTES:
        return None
    return io.BytesIO(data.decode(encoding, "replace").encode(UTF_8, "replace"))


def files_below(real: str, only: str | None, unreadable: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the files to search: their names for the answer, and where they are."""
    if not stat.S_ISDIR(os.stat(real).st_mode):
        yield "", real
        return
    wanted = re.compile(translated(only), re.DOTALL) if only else None
    for name, entry in walked(real, unreadable):
        if entry.is_file(follow_symlinks=False) and (wanted is None or wanted.fullmatch(name)):
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


def translated(pattern: str) -> str:
    """Return a glob pattern as a regular expression; one without a slash matches names at any depth."""
    if "/" not in pattern:
        pattern = "**/" + pattern
    said = ""
    for part in re.findall(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|.", pattern.lstrip("/"), re.DOTALL):
        if part in GLOB:
            said += GLOB[part]
        elif len(part) > 1:
            said += "[" + part[1:-1].replace("\\", "\\\\").replace("!", "^", part.startswith("[!")) + "]"
        else:
            said += re.escape(part)
    return said
