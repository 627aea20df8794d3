"""Changed files as state holds them: as text where they are text, for state is JSON and is read by people.

What is no UTF-8 text is held in base64, and a name that is no UTF-8 as git writes it: in quotes, with its
bytes as octal escapes.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

# Python 3.11 needs this one: pydantic reads it for the schemas that the server shows.
from typing_extensions import TypedDict

_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_ESCAPE = re.compile(r'\\([0-7]{3})|\\(["\\])')
_BYTE = re.compile('[\udc80-\udcff"\\\\]')


def _decodable(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("that is no base64") from None
    return text


class Binary(TypedDict):
    """Content that is no UTF-8 text."""

    base64: Annotated[str, AfterValidator(_decodable)]


Held = str | Binary


def text_of(data: bytes) -> str | None:
    """Return content as text, or None where it is none: no UTF-8, or with NUL characters in it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def readable(data: bytes) -> tuple[str, str] | None:
    """Return a text in whatever encoding, with the encoding's name; None where it looks like no text."""
    if (text := text_of(data)) is not None:
        return "utf-8", text
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    for encoding in ("utf-16",) if wide else ("latin-1", "cp1252"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if not _NO_TEXT.search(text):
            return encoding, text
    return None


def held(data: bytes) -> Held:
    """Return content as state holds it."""
    text = text_of(data)
    return Binary(base64=base64.b64encode(data).decode()) if text is None else text


def content(value: Held) -> bytes:
    """Return the content that state holds."""
    return value.encode("utf-8", "replace") if isinstance(value, str) else base64.b64decode(value["base64"])


def key_of(path: str) -> str:
    """Return what a path is called in state."""
    if not path.startswith('"') and not any("\ud800" <= char <= "\udfff" for char in path):
        return path
    return f'"{_BYTE.sub(_escaped, path)}"'


def path_of(key: str) -> str:
    """Return the path that is called so in state.

    Raises:
        ValueError: no path is.
    """
    if not key.startswith('"'):
        return key
    data = _ESCAPE.sub(_unescaped, key[1:-1]).encode("utf-8", "surrogateescape")
    path = data.decode("utf-8", "surrogateescape")
    if key_of(path) != key:
        raise ValueError(f"{key[:100]!r} is no name of a file")
    return path


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}" if found[0] in '"\\' else f"\\{ord(found[0]) - 0xDC00:03o}"


def _unescaped(found: re.Match[str]) -> str:
    return found[2] or chr(0xDC00 + (int(found[1], 8) & 0xFF))


def changes_of(state: Mapping[str, Any]) -> dict[str, bytes | None]:
    """Return the changes that state holds: path → content, None for a deleted file."""
    return {
        path_of(key): None if value is None else content(value) for key, value in state["changes"].items()
    }
