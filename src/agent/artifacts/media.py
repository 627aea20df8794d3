"""The kinds of artifact: how each is named and served, and which a model can look at."""

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Medium:
    """How one MIME type is named and served."""

    extension: str
    inline: bool = False
    """Whether a browser may open it in place. What can hold scripts is handed out as a download instead."""
    seen: bool = False
    """Whether vision models take it."""
    binary: bool = False
    """Whether a kernel hands it over as base64 rather than as text."""
    called: str = ""
    """What links to it say, where the extension in capitals would say too little."""
    linked: bool = False
    """Whether it is kept and linked however short it is: whoever reads it needs a program to see it."""
    served: str = ""
    """The type that browsers are told, where they would not know its own."""


MEDIA = {
    "image/png": Medium("png", inline=True, seen=True, binary=True),
    "image/jpeg": Medium("jpg", inline=True, seen=True, binary=True),
    "image/gif": Medium("gif", inline=True, seen=True, binary=True),
    "image/webp": Medium("webp", inline=True, seen=True, binary=True),
    "image/svg+xml": Medium("svg"),
    "application/pdf": Medium("pdf", binary=True),
    "application/json": Medium("json", inline=True),
    # What E2B's templates tell of a matplotlib figure: its kind, axes and values.
    "application/vnd.e2b.chart+json": Medium(
        "json", inline=True, called="chart data", served="application/json"
    ),
    "application/javascript": Medium("js", called="JavaScript"),
    "text/html": Medium("html"),
    "text/markdown": Medium("md", inline=True),
    "text/latex": Medium("tex", inline=True),
    "text/csv": Medium("csv", inline=True),
    "text/plain": Medium("txt", inline=True),
    "application/octet-stream": Medium("bin"),
}


_MIME = re.compile(r"[a-z]+/[A-Za-z0-9_.+-]{1,80}")
_EXTENSION = re.compile("[a-z0-9]{1,5}")
_OF_JSON = re.compile(r"(?:vnd\.|x-)?([a-z0-9][a-z0-9_-]*)")
_MARKER = re.compile(rb"\xff++[^\xff]", re.DOTALL)
_MAX_SEGMENTS = 10_000
"""Of a JPEG before its frame's header: a profile of colours takes a few hundred at most."""


def size_of_image(data: bytes) -> tuple[int, int] | None:
    """Return an image's width and height, in pixels, as its header tells; None where it tells none.

    A few bytes may claim any size: nothing of the image itself is decoded.
    """
    match data[:4]:
        case b"\x89PNG" if data[12:16] == b"IHDR" and len(data) >= 24:
            return _number(data[16:20]), _number(data[20:24])
        case b"GIF8" if len(data) >= 10:
            return _number(data[6:8], "little"), _number(data[8:10], "little")
        case b"RIFF" if data[8:12] == b"WEBP" and len(data) >= 30:
            return _size_of_webp(data)
    return _size_of_jpeg(data) if data.startswith(b"\xff\xd8") else None


def _size_of_webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8X":
            return _number(data[24:27], "little") + 1, _number(data[27:30], "little") + 1
        case b"VP8L":
            both = _number(data[21:25], "little")
            return (both & 0x3FFF) + 1, (both >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            return _number(data[26:28], "little") & 0x3FFF, _number(data[28:30], "little") & 0x3FFF
    return None


def _size_of_jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    for _ in range(_MAX_SEGMENTS):
        # Bytes of 0xFF may fill the space before a marker.
        found = _MARKER.match(data, at)
        if not found or found.end() + 7 > len(data):
            return None
        marker, at = found[0][-1], found.end()
        # The frames' headers; between their numbers stand those of three tables.
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            return _number(data[at + 5 : at + 7]), _number(data[at + 3 : at + 5])
        at += max(_number(data[at : at + 2]), 2)
    return None


def _number(data: bytes, order: Literal["big", "little"] = "big") -> int:
    return int.from_bytes(data, order)


def medium(mime: str) -> Medium:
    """Return how a MIME type is served; one that is not known as its kind is, else as bytes to download."""
    if mime in MEDIA:
        return MEDIA[mime]
    if not _MIME.fullmatch(mime):
        return MEDIA["application/octet-stream"]
    kind, _, name = mime.partition("/")
    if mime.endswith(("+json", ".json")):
        # Charts and widgets come as JSON of their own: plotly, Vega-Lite, Bokeh, maps.
        found = _OF_JSON.match(name)
        called = f"{found[1].replace('-', ' ')} (JSON)" if found else ""
        return Medium("json", inline=True, called=called, linked=True, served="application/json")
    if mime.endswith("+xml"):
        return Medium("xml", served="application/xml")
    if kind == "text":
        return Medium("txt", served="text/plain")
    if kind in {"image", "audio", "video"} and _EXTENSION.fullmatch(name):
        return Medium(name, binary=True)
    return MEDIA["application/octet-stream"]


def is_named(mime: str) -> bool:
    """Whether a MIME type is known, by itself or by its kind."""
    return medium(mime) != MEDIA["application/octet-stream"] or mime == "application/octet-stream"
