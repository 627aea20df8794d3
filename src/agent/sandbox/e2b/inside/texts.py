"""Text in files: in which encoding, and how its lines end."""

from __future__ import annotations

import codecs
import re

from agent.sandbox.e2b.inside.spool import whole_characters

UTF_8 = "utf-8"
MAX_RECODED_BYTES = 16_000_000
"""Of a file in another encoding than UTF-8, which is read whole."""
BOMS = (
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""That of UTF-32 begins with that of UTF-16."""
DECLARED = re.compile(rb"coding[:=][ \t]*[\"']?([-\w.]+)|charset=[\"']?([-\w.]+)")
"""In one of the first two lines: Python, XML, HTML, editors."""
NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
MAX_FOREIGN = 0.3
"""The part of bytes beyond ASCII that text in one of the western encodings has at most."""


def encoding_of(data: bytes, goes_on: bool = False) -> tuple[str, bytes] | None:
    """Return the encoding of text and the byte order mark it begins with; None where it is no text.

    Args:
        data: the whole, or its beginning.
        goes_on: the last character may be cut.
    """
    for mark, encoding in BOMS:
        if data.startswith(mark):
            return encoding, mark
    if b"\0" in data:
        return without_mark(data)
    try:
        (whole_characters(data) if goes_on else data).decode()
        return UTF_8, b""
    except UnicodeDecodeError:
        pass
    if NO_TEXT.search(data):
        return None
    name = declared(data)
    if name and name != UTF_8:
        return name, b""
    foreign = sum(byte >= 0x80 for byte in data)
    if foreign > MAX_FOREIGN * len(data):
        return None
    return ("cp1252" if re.search(rb"[\x80-\x9f]", data) else "iso8859-1"), b""


def without_mark(data: bytes) -> tuple[str, bytes] | None:
    """Return the kind of UTF-16 that has no mark: every other byte of western text in it is zero."""
    half = len(data) // 2
    for encoding, zeros in (("utf-16-le", data[1::2]), ("utf-16-be", data[0::2])):
        others = data.count(b"\0") - zeros.count(b"\0")
        if half and zeros.count(b"\0") > 0.7 * half and not others:
            return encoding, b""
    return None


def declared(data: bytes) -> str:
    """Return the encoding that a file says it has; empty where it says none that Python knows."""
    head = b"\n".join(data[:1_000].split(b"\n")[:2])
    found = DECLARED.search(head)
    if not found:
        return ""
    try:
        return codecs.lookup((found[1] or found[2]).decode()).name
    except (LookupError, UnicodeDecodeError):
        return ""


def named(encoding: str, mark: bytes) -> str:
    """Return what an encoding is called where it is not plain UTF-8."""
    return "" if (encoding, mark) == (UTF_8, b"") else encoding + (" with a byte order mark" if mark else "")


def text_of(data: bytes) -> tuple[str, str, bytes]:
    """Return a file's text, its encoding and its byte order mark.

    Raises:
        ValueError: it is no text, or not in the encoding that it says it is in.
    """
    found = encoding_of(data)
    if found is None:
        raise ValueError("it is not text")
    encoding, mark = found
    try:
        text = data[len(mark) :].decode(encoding)
        same = text.encode(encoding) == data[len(mark) :]
    except (UnicodeError, LookupError):
        same = False
    if not same:
        raise ValueError(f"it is not text in {encoding}")
    return text, encoding, mark


def replaced(text: str, old: str, new: str) -> tuple[str, list[int]]:
    """Replace a text wherever it occurs; return the new one, and the offsets.

    A line feed in `old` stands for the end of a line, as each line of the file has it, and what is put in
    ends its lines as those around it. An `old` with a carriage return is taken as it is.
    """
    exact = "\r" in old or "\r\n" not in text
    pattern = re.escape(old) if exact else "\r?\n".join(map(re.escape, old.split("\n")))
    places = list(re.finditer(pattern, text))
    pieces, at = [], 0
    for place in places:
        crlf = not exact and "\n" in new and ends_with_crlf(text, place.start(), place.end())
        pieces += [text[at : place.start()], re.sub("\r?\n", "\r\n", new) if crlf else new]
        at = place.end()
    return "".join([*pieces, text[at:]]), [place.start() for place in places]


def ends_with_crlf(text: str, start: int, end: int) -> bool:
    """Whether the line that begins before `start` ends so; the last line of a file as the one before."""
    feed = text.find("\n", start)
    if feed < 0:
        feed = text.rfind("\n", 0, end)
    return feed > 0 and text[feed - 1] == "\r"
