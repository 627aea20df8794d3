"""The kinds of artifact: how each is named and served, and which a model can look at."""

from dataclasses import dataclass


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


MEDIA = {
    "image/png": Medium("png", inline=True, seen=True, binary=True),
    "image/jpeg": Medium("jpg", inline=True, seen=True, binary=True),
    "image/gif": Medium("gif", inline=True, seen=True, binary=True),
    "image/webp": Medium("webp", inline=True, seen=True, binary=True),
    "image/svg+xml": Medium("svg"),
    "application/pdf": Medium("pdf", binary=True),
    "application/json": Medium("json"),
    # What E2B's templates tell of a matplotlib figure: its kind, axes and values.
    "application/vnd.e2b.chart+json": Medium("json", called="chart data"),
    "text/html": Medium("html"),
    "text/markdown": Medium("md", inline=True),
    "text/latex": Medium("tex", inline=True),
    "text/csv": Medium("csv", inline=True),
    "text/plain": Medium("txt", inline=True),
    "application/octet-stream": Medium("bin"),
}


def medium(mime: str) -> Medium:
    """Return how a MIME type is served; one that is not known as bytes to download."""
    return MEDIA.get(mime, MEDIA["application/octet-stream"])
