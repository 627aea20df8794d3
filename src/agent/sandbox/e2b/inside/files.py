"""Works on files of the work folder, and lets no path or link lead out of it."""

from __future__ import annotations

import base64
import io
import os
import stat

from agent.sandbox.e2b.inside.calls import answer
from agent.sandbox.e2b.inside.encodings import (
    SNIFFED_BYTES,
    Encoding,
    Recoded,
    as_before,
    encoding_of,
    replacements,
)
from agent.sandbox.e2b.inside.entries import (
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

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than this program runs
    from typing import Any

MAX_IMAGE_BYTES = 5_000_000
MAX_KEPT_BYTES = 16_000_000
"""Of a file that is looked at before it is written: its encoding and its line ends are kept."""
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
    with open(real, "rb") as file:
        sniffed = file.read(SNIFFED_BYTES)
        mime = image_type(sniffed)
        if mime and size <= MAX_IMAGE_BYTES:
            return {"kind": "image", "size": size, "mime": mime, "data": encoded(sniffed + file.read())}
        encoding = None if mime else encoding_of(file)
        if encoding is None:
            return {"kind": "binary", "size": size, "data": encoded(sniffed[:24])}
        source: Any = file if encoding.clean else Recoded(file, encoding)
        if encoding.clean:
            file.seek(0)
        if start is None:
            found = {"kind": "text", "size": size, **lines_of(source, first, last, room)}
        else:
            found = {"kind": "bytes", **part_of(source, start, room)}
        return {**found, "encoding": encoding.name}


def part_of(file: Any, start: int, room: int) -> dict[str, Any]:
    """Return the text from a byte on, while there is room; no character is cut in half."""
    data, at = b"", 0
    while piece := file.read(BLOCK_BYTES):
        if len(data) < room + 4 and at + len(piece) > start:
            data += piece[max(start - at, 0) :][: room + 4 - len(data)]
        at += len(piece)
    whole = from_character(data) if start else data
    text = whole_characters(whole[:room])
    begin = min(start, at) + len(data) - len(whole)
    return {"size": at, "start": begin, "end": begin + len(text), "text": decoded(text)}


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
    """Write a text file whole, making its folders; see `as_before`."""
    real = openable(path, root, [])
    os.makedirs(os.path.dirname(real), exist_ok=True)
    content, was = base64.b64decode(data), b""
    if os.path.isfile(real) and os.access(real, os.R_OK) and os.stat(real).st_size <= MAX_KEPT_BYTES:
        with open(real, "rb") as file:
            was = file.read()
    content, encoding, crlf = as_before(content, was)
    replace(real, content)
    return {"size": len(content), "encoding": encoding, "crlf": crlf}


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
    """Replace a text that occurs exactly as often as is said, in the file's own encoding."""
    real = openable(path, root, [])
    with open(real, "rb") as file:
        content = file.read()
    # In what is no text, bytes are replaced that are some in UTF-8.
    encoding = encoding_of(io.BytesIO(content)) or Encoding("utf-8")
    text = text_of(content, encoding)
    sought, put = replacements(text, old, new)
    if len(put) == count:
        made, end = [], 0
        for at, ending in put:
            made += [text[end:at], ending]
            end = at + len(sought)
        text_now = "".join([*made, text[end:]])
        replace(real, encoding.bom + bytes_of(text_now, new, encoding))
    return {
        "found": len(put),
        "lines": [text.count("\n", 0, at) + 1 for at, _ in put[:20]],
        "crlf": "\r\n" in text and "\r\n" not in old and "\n" in old,
        "kept": any(ending != new for _, ending in put),
        "encoding": encoding.name,
    }


def text_of(content: bytes, encoding: Encoding) -> str:
    """Return the text of a file, of which each byte can be written back as it is."""
    data = content[len(encoding.bom) :]
    try:
        text = data.decode(encoding.codec, encoding.errors)
        same = text.encode(encoding.codec, encoding.errors) == data
    except UnicodeError:
        same = False
    if not same:
        raise OSError(
            f"not all of it is text in {encoding.name}, so it cannot be edited; nothing was changed"
        )
    return text


def bytes_of(text: str, new: str, encoding: Encoding) -> bytes:
    """Return a text in a file's encoding; refuse what that does not have."""
    try:
        new.encode(encoding.codec)
    except UnicodeEncodeError as exc:
        lacks = f"{encoding.name or 'utf-8'}, which has no {new[exc.start : exc.end][:20]!a}"
        raise OSError(f"the file is in {lacks} of the new text; nothing was changed") from None
    return text.encode(encoding.codec, encoding.errors)


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
