"""Works on files of the work folder, and lets no path or link lead out of it."""

from __future__ import annotations

import base64
import io
import os
import stat

from agent.sandbox.e2b.inside.calls import answer
from agent.sandbox.e2b.inside.entries import (
    SNIFFED_BYTES,
    at_home,
    decoded,
    encoded,
    image_type,
    openable,
    resolved,
    told,
)
from agent.sandbox.e2b.inside.search import find, search
from agent.sandbox.e2b.inside.spool import from_character, whole_characters
from agent.sandbox.e2b.inside.texts import (
    MAX_RECODED_BYTES,
    UTF_8,
    declared,
    encoding_of,
    named,
    replaced,
    text_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than this program runs
    from typing import Any

MAX_IMAGE_BYTES = 5_000_000
BLOCK_BYTES = 1 << 20


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
    real = openable(path, root, also)
    size = os.stat(real).st_size
    file: Any
    with open(real, "rb") as file:
        sniffed = file.read(SNIFFED_BYTES)
        mime = image_type(sniffed)
        if mime and size <= MAX_IMAGE_BYTES:
            return {"kind": "image", "size": size, "mime": mime, "data": encoded(sniffed + file.read())}
        found = None if mime else encoding_of(sniffed, len(sniffed) < size)
        if found is None or (found != (UTF_8, b"") and size > MAX_RECODED_BYTES):
            return {"kind": "binary", "size": size, "data": encoded(sniffed[:24])}
        file.seek(0)
        encoding = ""
        if size <= MAX_RECODED_BYTES:
            data = file.read()
            # Decided by all of it: what is not UTF-8 may stand behind what was sniffed.
            found = encoding_of(data) or found
            encoding = named(*found)
            if encoding:
                data = data[len(found[1]) :].decode(found[0], "replace").encode(UTF_8, "replace")
            file, size = io.BytesIO(data), len(data)
        shown = {"size": size, "encoding": encoding}
        if start is not None:
            file.seek(start)
            data = from_character(file.read(room + 4)) if start else file.read(room + 4)
            text = whole_characters(data[:room])
            end = file.tell() - len(data) + len(text)
            return {
                "kind": "bytes",
                **shown,
                "start": end - len(text),
                "end": end,
                "text": decoded(text),
            }
        return {"kind": "text", **shown, **lines_of(file, first, last, room)}


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
    """Write a file whole, making its folders; in the encoding that its text declares, or in UTF-8."""
    real = openable(path, root, [])
    os.makedirs(os.path.dirname(real), exist_ok=True)
    content = base64.b64decode(data)
    before = start_of(real)
    was = encoding_of(before, goes_on=True) if before else None
    encoding = declared(content) or UTF_8
    try:
        content = content.decode().encode(encoding)
    except UnicodeError:
        encoding = UTF_8
    replace(real, content)
    return {
        "size": len(content),
        "encoding": named(encoding, b""),
        "was": named(*was) if was and was != (encoding, b"") else "",
        "was_crlf": b"\r\n" in before and b"\r\n" not in content and b"\n" in content,
    }


def start_of(real: str) -> bytes:
    """Return the first bytes of a file; none of one that is not there or cannot be read."""
    try:
        with open(real, "rb") as file:
            return file.read(SNIFFED_BYTES)
    except OSError:
        return b""


def replace(real: str, content: bytes) -> None:
    """Write a file whole or not at all: what was there stays where the new content has no room.

    One with several names or of another user is written in place, and so is one whose folder takes no other.
    """
    there = os.stat(real) if os.path.exists(real) else None
    mine = there is None or (
        there.st_nlink == 1 and there.st_uid == os.geteuid() and os.access(real, os.W_OK)
    )
    aside = os.path.join(os.path.dirname(real), f".{os.getpid()}.writing")
    try:
        if not mine:
            raise PermissionError
        number = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except (PermissionError, FileExistsError):
        number, aside = os.open(real, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), ""
    try:
        with open(number, "wb") as file:
            file.write(content)
        if aside:
            if there:
                os.chmod(aside, stat.S_IMODE(there.st_mode))
            os.replace(aside, real)
    except OSError:
        if aside:
            os.unlink(aside)
        raise


def edit(path: str, root: str, old: str, new: str, count: int) -> dict[str, Any]:
    """Replace a text that occurs exactly as often as is said; encoding and line ends stay the file's own."""
    real = openable(path, root, [])
    with open(real, "rb") as file:
        data = file.read()
    try:
        text, encoding, mark = text_of(data)
    except ValueError as exc:
        raise OSError(str(exc)) from None
    edited, places = replaced(text, old, new)
    if len(places) == count:
        try:
            content = edited.encode(encoding)
        except UnicodeEncodeError as exc:
            char = exc.object[exc.start]
            raise OSError(f"its encoding, {encoding}, has no {char!r}; nothing was changed") from None
        replace(real, mark + content)
    lines = [text.count("\n", 0, place) + 1 for place in places[:20]]
    return {"found": len(places), "lines": lines}


def listing(path: str, root: str, also: list[str], most: int) -> dict[str, Any]:
    """Return a folder's entries by name, and how many there are."""
    real = resolved(path, root, also)
    with os.scandir(real) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    return {"entries": [told(entry.name, entry) for entry in entries[:most]], "total": len(entries)}


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
