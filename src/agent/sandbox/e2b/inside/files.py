"""Works on files of the work folder, and lets no path or link lead out of it."""

from __future__ import annotations

import base64
import os
import re
import stat

from agent.sandbox.e2b.inside.calls import answer
from agent.sandbox.e2b.inside.spool import from_character, whole_characters

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than this program runs
    from collections.abc import Iterator
    from typing import Any

IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
MAX_IMAGE_BYTES = 5_000_000
SNIFFED_BYTES = 8192
HOME = "/home/user"
BLOCK_BYTES = 1 << 20
LEFT_OUT = (".git",)
"""Folders that searches do not enter."""


def at_home(path: str) -> str:
    """Return a path below the home folder as this sandbox has it; without isolation it lies elsewhere."""
    below = path == HOME or path.startswith(HOME + "/")
    return os.environ.get("HOME", HOME) + path[len(HOME) :] if below else path


def resolved(path: str, root: str, also: list[str], of_link: bool = False) -> str:
    """Return where a path leads, links followed; refuse one that leads out of the folders.

    Args:
        path: absolute.
        root: the work folder.
        also: other folders that may be read.
        of_link: the path's last part is meant itself, should it be a link.
    """
    path = at_home(path)
    if of_link:
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    else:
        real = os.path.realpath(path)
    for folder in [root, *also]:
        base = os.path.realpath(at_home(folder))
        if real == base or real.startswith(base.rstrip("/") + "/"):
            return real
    raise PermissionError("a link leads out of the work folder")


def read(
    path: str, root: str, also: list[str], first: int, last: int | None, start: int | None, room: int
) -> dict[str, Any]:
    """Return lines of a text file, as many as there is room for, or what else the file is.

    Args:
        first: the first line wanted, from 1.
        last: the last line wanted; None means the end.
        start: instead of lines: the byte to begin at.
        room: the most bytes of text.
    """
    real = resolved(path, root, also)
    size = os.stat(real).st_size
    with open(real, "rb") as file:
        sniffed = file.read(SNIFFED_BYTES)
        mime = image_type(sniffed)
        if mime and size <= MAX_IMAGE_BYTES:
            return {"kind": "image", "size": size, "mime": mime, "data": encoded(sniffed + file.read())}
        if mime or not is_text(sniffed, len(sniffed) < size):
            return {"kind": "binary", "size": size, "data": encoded(sniffed[:24])}
        file.seek(0)
        if start is not None:
            file.seek(start)
            data = from_character(file.read(room + 4)) if start else file.read(room + 4)
            text = whole_characters(data[:room])
            end = file.tell() - len(data) + len(text)
            return {
                "kind": "bytes",
                "size": size,
                "start": end - len(text),
                "end": end,
                "text": decoded(text),
            }
        return {"kind": "text", "size": size, **lines_of(file, first, last, room)}


def lines_of(file: Any, first: int, last: int | None, room: int) -> dict[str, Any]:
    """Return whole lines while there is room; of a first one that alone is too long, its beginning."""
    total = shown = line_start = begin = offset = 0
    taken = b""
    full = cut = open_line = False
    while block := file.readline(BLOCK_BYTES):
        if not open_line:
            total, line_start = total + 1, len(taken)
        if first <= total <= (last or total) and not full:
            begin = begin if taken else offset
            full = len(taken) + len(block) > room
            cut = full and not line_start
            taken = (
                whole_characters((taken + block)[:room])
                if cut
                else taken[:line_start]
                if full
                else taken + block
            )
            shown = total if cut or not full else shown
        open_line = not block.endswith(b"\n")
        offset += len(block)
    return {
        "first": min(first, shown),
        "last": shown,
        "total": total,
        "text": decoded(taken),
        "cut": cut,
        "end": begin + len(taken),
    }


def write(path: str, root: str, data: str) -> dict[str, Any]:
    """Write a file whole, making its folders."""
    real = resolved(path, root, [])
    os.makedirs(os.path.dirname(real), exist_ok=True)
    content = base64.b64decode(data)
    with open(real, "wb") as file:
        file.write(content)
    return {"size": len(content)}


def edit(path: str, root: str, old: str, new: str, count: int) -> dict[str, Any]:
    """Replace a text that occurs exactly as often as is said."""
    real = resolved(path, root, [])
    with open(real, "rb") as file:
        content = file.read()
    before, after = old.encode(), new.encode()
    found = content.count(before)
    lines: list[int] = []
    at = content.find(before)
    while at >= 0 and len(lines) < 20:
        lines.append(content.count(b"\n", 0, at) + 1)
        at = content.find(before, at + len(before))
    crlf = b"\r\n" in content and b"\r\n" not in before and b"\n" in before
    if found == count:
        with open(real, "wb") as file:
            file.write(content.replace(before, after))
    return {"found": found, "lines": lines, "crlf": crlf}


def listing(path: str, root: str, also: list[str], most: int) -> dict[str, Any]:
    """Return a folder's entries by name, and how many there are."""
    real = resolved(path, root, also)
    with os.scandir(real) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    return {"entries": [told(entry.name, entry) for entry in entries[:most]], "total": len(entries)}


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
    real = resolved(path, root, also)
    unreadable: list[str] = []
    matches: list[dict[str, Any]] = []
    count = searched = binary = 0
    for name, whole in files_below(real, only, unreadable):
        try:
            with open(whole, "rb") as file:
                if not is_text(file.read(SNIFFED_BYTES), True):
                    binary += 1
                    continue
                file.seek(0)
                searched += 1
                for number, line in enumerate(file, 1):
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


def delete(path: str, root: str, recursive: bool) -> dict[str, Any]:
    """Delete a file, a link (not what it leads to), or a folder."""
    real = resolved(path, root, [], of_link=True)
    if real == os.path.realpath(at_home(root)):
        raise PermissionError("the work folder itself is not deleted")
    if stat.S_ISDIR(os.lstat(real).st_mode):
        if recursive:
            import shutil  # here, as it takes long to import

            shutil.rmtree(real)
        else:
            os.rmdir(real)
        return {"kind": "folder"}
    os.unlink(real)
    return {"kind": "file"}


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


GLOB = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def image_type(data: bytes) -> str | None:
    """Return the MIME type of an image by its first bytes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for start, mime in IMAGES if data.startswith(start)), None)


def is_text(data: bytes, goes_on: bool) -> bool:
    """Whether bytes are UTF-8; the last character may be cut where more follows."""
    if b"\0" in data:
        return False
    try:
        (whole_characters(data) if goes_on else data).decode()
    except UnicodeDecodeError:
        return False
    return True


def kind(mode: int) -> str:
    """Return what an entry is."""
    if stat.S_ISLNK(mode):
        return "link"
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def told(name: str, entry: Any) -> dict[str, Any]:
    """Return what is said of an entry."""
    status = entry.stat(follow_symlinks=False)
    return {"path": readable(name), "kind": kind(status.st_mode), "size": status.st_size}


def readable(name: str) -> str:
    """Return a name that may not be UTF-8 as text that is."""
    return os.fsencode(name).decode("utf-8", "replace")


def decoded(data: bytes) -> str:
    """Return bytes as text."""
    return data.decode("utf-8", "replace")


def encoded(data: bytes) -> str:
    """Return bytes as base64."""
    return base64.b64encode(data).decode()


if __name__ == "__main__":
    answer(
        {
            "read": read,
            "write": write,
            "edit": edit,
            "list": listing,
            "find": find,
            "search": search,
            "delete": delete,
        }
    )
