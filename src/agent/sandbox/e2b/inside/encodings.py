"""How a text file is encoded, and how its lines end: told from what it holds, and kept when it is written."""

from __future__ import annotations

import codecs
import io
import re

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than this program runs
    from typing import Any

SNIFFED_BYTES = 8192
"""Of a file: enough to tell what it is."""
PIECE_BYTES = 1 << 20
BOMS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
# As Python reads its sources (PEP 263), and XML.
DECLARED = re.compile(
    rb"(?:[ \t\f]*(?:#[^\r\n]*)?\r?\n)?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)"
    rb"|\s*<\?xml[^>]{1,200}?\bencoding=[\"']([-\w.]+)"
)
CONTROLS = bytes({*range(32), 127} - {*b"\t\n\v\f\r\b\x1a\x1b"})
"""Of ASCII, what no text holds."""
CONTROL = re.compile("[" + re.escape(CONTROLS.decode()) + "]")
NOT_IN_1252 = b"\x81\x8d\x8f\x90\x9d"


class Encoding:
    """An encoding.

    Args:
        codec: as Python calls it.
        bom: the mark that the file begins with.
        note: what is to be said of it besides its name.
        clean: it is known that all of the file is in it.
    """

    def __init__(self, codec: str, bom: bytes = b"", note: str = "", clean: bool = False) -> None:
        self.codec, self.bom, self.note, self.clean = codec, bom, note, clean

    @property
    def name(self) -> str:
        """What it is called to whoever reads; nothing where it goes without saying."""
        if self.codec == "utf-8" and not self.bom and not self.note:
            return ""
        return self.codec + (" with BOM" if self.bom else "") + (f" ({self.note})" if self.note else "")

    @property
    def errors(self) -> str:
        """How bytes that are not in it are kept, which only one has room for."""
        return "surrogateescape" if self.codec == "utf-8" else "strict"


def by_beginning(data: bytes, goes_on: bool) -> Encoding | None:
    """Return the encoding that a file's beginning tells, else UTF-8; None where it is no text."""
    for bom, codec in BOMS:
        whole = b"\0" not in data if codec == "utf-8" else is_in(data[len(bom) :], codec, goes_on)
        if data.startswith(bom) and whole:
            return Encoding(codec, bom)
    if b"\0" in data:
        for codec, empty in (("utf-16-le", data[1::2]), ("utf-16-be", data[::2])):
            # Of most letters of Europe one byte is none; anything else might be a program.
            if empty.count(b"\0") > 0.8 * len(empty) and is_in(data, codec, goes_on):
                return Encoding(codec, note="guessed")
        return None
    codec = declared(data)
    return Encoding(codec if codec and is_in(data, codec, goes_on) else "utf-8")


def declared(data: bytes) -> str:
    """Return the encoding that a source file says it is in, should it be another than UTF-8."""
    found = DECLARED.match(data)
    if not found:
        return ""
    try:
        name = codecs.lookup((found[1] or found[2]).decode()).name
        # One of texts, and one in which the declaration can be read.
        readable = found[0].decode(name) == found[0].decode("ascii")
    except (LookupError, ValueError):
        return ""
    name = {"iso8859-1": "latin-1"}.get(name, name)
    return name if readable and name not in ("utf-8", "utf-8-sig", "ascii") else ""


def is_in(data: bytes, codec: str, goes_on: bool) -> bool:
    """Whether bytes are a text in an encoding; the last character may be cut where more follows."""
    try:
        text = codecs.getincrementaldecoder(codec)().decode(data, not goes_on)
    except (UnicodeError, LookupError):
        return False
    return not CONTROL.search(text)


def encoding_of(file: Any) -> Encoding | None:
    """Return a file's encoding, which all of it was looked at for; None where it is no text."""
    file.seek(0)
    begin = file.read(SNIFFED_BYTES)
    told = by_beginning(begin, len(begin) == SNIFFED_BYTES)
    if told is None or told.codec != "utf-8" or told.bom:
        return told
    strict = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in pieces_of(file):
            strict.decode(piece)
        strict.decode(b"", True)
    except UnicodeDecodeError:
        return not_utf8(file)
    return Encoding("utf-8", clean=True)


def not_utf8(file: Any) -> Encoding | None:
    """Return the encoding of a file that is not all UTF-8 and tells none."""
    lenient = codecs.getincrementaldecoder("utf-8")("replace")
    wrong = right = 0
    controls = upper = False
    in_1252 = True
    for piece in pieces_of(file):
        text = lenient.decode(piece)
        bad = text.count("\ufffd")
        wrong += bad
        right += sum(not part.isascii() for part in text) - bad if not text.isascii() else 0
        controls = controls or len(piece.translate(None, CONTROLS)) < len(piece)
        upper = upper or len(piece.translate(None, bytes(range(0x80, 0xA0)))) < len(piece)
        in_1252 = in_1252 and len(piece.translate(None, NOT_IN_1252)) == len(piece)
    if right > wrong:
        return Encoding("utf-8", note=f"but for {wrong} bytes")
    if controls or (upper and not in_1252):
        return None
    return Encoding("cp1252" if upper else "latin-1", note="guessed")


def pieces_of(file: Any) -> Any:
    """Yield all of a file, piece by piece."""
    file.seek(0)
    while True:
        piece = file.read(PIECE_BYTES)
        if not piece:
            return
        yield piece


class Recoded:
    """A file's text as UTF-8: read as the file itself would be, were it in that.

    Args:
        file: open for reading bytes; closed with this.
        encoding: the file's.
        lenient: what is not in that encoding is shown as such; else it is an error.
    """

    def __init__(self, file: Any, encoding: Encoding, lenient: bool = True) -> None:
        file.seek(len(encoding.bom))
        errors = "replace" if lenient else "strict"
        self.text = io.TextIOWrapper(file, encoding.codec, errors=errors, newline="\n")

    def readline(self, most: int) -> bytes:
        """Return the next line, or about as much of it."""
        return self.text.readline(most // 4).encode("utf-8", "replace")

    def read(self, most: int) -> bytes:
        """Return the next bytes, about as many."""
        return self.text.read(most // 4).encode("utf-8", "replace")


def with_crlf(text: str) -> str:
    """Return a text all of whose lines end with a carriage return and a line feed."""
    return re.sub(r"\r?\n", "\r\n", text)


def ends_with_crlf(text: str) -> bool:
    """Whether all lines of a text do."""
    return "\r\n" in text and not re.search(r"(?<!\r)\n", text)


def replacements(text: str, old: str, new: str) -> tuple[str, list[tuple[int, str]]]:
    """Return the text to replace as `text` has it, and for each place in order what to put there.

    Where all lines end with a carriage return, so do those that are asked for and put in without; where only
    some do, what is put in ends as the line it is put in does. What changes nothing but line ends is meant.
    """
    if ends_with_crlf(text) and with_crlf(old) in text:
        old = with_crlf(old)
    meant = with_crlf(old) == with_crlf(new)
    put: list[tuple[int, str]] = []
    at = text.find(old)
    while at >= 0:
        end = at + len(old)
        # The line end within, or the next one, or at a file's end the one before.
        near = text.find("\n", at if "\n" in old else end)
        near = near if near >= 0 else text.rfind("\n", 0, at)
        ending = new if meant or text[max(near - 1, 0) : near] != "\r" else with_crlf(new)
        begun = text[max(at - 1, 0) : at] == "\r" and old.startswith("\n") and ending.startswith("\r\n")
        put.append((at, ending[1:] if begun else ending))
        at = text.find(old, end)
    return old, put


def as_before(content: bytes, was: bytes) -> tuple[bytes, str, bool]:
    """Return a file's new content in the encoding it declares or had, and with the line ends it had.

    A script whose first line names its interpreter can have neither a mark before that nor a carriage return
    behind it: it is left as it came. So is what has a mark or carriage returns of its own.

    Args:
        content: the new one, in UTF-8.
        was: the old one, empty where there was none.

    Returns:
        What to write, a word on its encoding where that is not UTF-8, and whether line ends were changed.
    """
    text, before = content.decode(), encoding_of(io.BytesIO(was))
    if before is None or text.startswith(("#!", "\ufeff")):
        return content, "", False
    codec = declared(content)
    # An old declaration went with the old content.
    kept = Encoding("utf-8", before.bom) if before.codec == "utf-8" else before
    encoding = Encoding(codec) if codec else Encoding("utf-8") if declared(was) else kept
    old = was[len(before.bom) :].decode(before.codec, "replace")
    crlf = ends_with_crlf(old) and "\r" not in text and "\n" in text
    text = with_crlf(text) if crlf else text
    try:
        return encoding.bom + text.encode(encoding.codec), encoding.name, crlf
    except UnicodeEncodeError as exc:
        return text.encode(), f"utf-8, for {encoding.codec} has no {text[exc.start]!a}", crlf
