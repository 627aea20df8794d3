"""Moving what a tool returned beside its text onto the thread's shelf.

A tool hands over `{"results": [{mime: data, …}, …]}` as its message's artifact: one mapping a result, with
the result's forms; images and PDF as base64, the rest as text. What state keeps instead is
`{"artifacts": [entry, …]}`, in the same order:

    {"result": 0, "name": "<hash>.png", "mime": "image/png", "size_bytes": 20114, "title": "image 1"}
    {"result": 1, "mime": "text/html", "text": "<table>…"}        short texts stay as they are
    {"result": 2, "mime": "image/png", "size_bytes": 9000000, "missing": "9000000 bytes, and at most …"}
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.artifacts.media import MEDIA, medium
from agent.artifacts.shelf import Shelf, ShelfFullError
from agent.errors import logged

logger = logging.getLogger(__name__)

Entry = dict[str, Any]

MAX_INLINE_BYTES = 2048
"""Texts up to this stay in the message's artifact: less than what an address and a name cost to fetch."""

NO_STORE = "this graph has no store"
_IN_THE_MESSAGE = frozenset({"text/plain"})
"""Forms whose text the tool's message shows already, in full or cut."""


@dataclass(frozen=True, slots=True)
class Shelving:
    """Puts the forms of one tool call's results away.

    Args:
        shelf: where to; None where the graph has no store: then bytes are not kept, and entries say so.
        redact: applied to every text before it is kept.
    """

    shelf: Shelf | None
    redact: Callable[[str], str]

    async def entries(self, results: Sequence[Mapping[str, str]]) -> list[Entry]:
        """Return what state keeps of the results, in order."""
        images = 0
        made: list[Entry] = []
        for index, forms in enumerate(results):
            for mime, value in _distinct(forms).items():
                images += mime.startswith("image/")
                kind = medium(mime)
                title = kind.called or kind.extension.upper()
                title = f"image {images}" if mime.startswith("image/") else title
                made.append({"result": index, "mime": mime} | await self._kept(value, mime, title))
        return made

    async def _kept(self, value: str, mime: str, title: str) -> Entry:
        try:
            # In a thread: of several megabytes it takes longer than others may wait.
            data = await asyncio.to_thread(self._data, value, mime)
        except binascii.Error:
            return {"size_bytes": len(value), "missing": "it could not be read"}
        if _is_short(data, mime):
            return {"text": data.decode()}
        if self.shelf is None:
            return {"size_bytes": len(data), "missing": NO_STORE}
        try:
            return dict(await self.shelf.keep(data, mime, title))
        except ShelfFullError as exc:
            return {"size_bytes": len(data), "missing": str(exc)}
        # A chart that cannot be stored must not turn the code's result into a failure: it did run.
        except Exception as exc:
            logger.error("an artifact could not be stored\n%s", logged(exc))
            return {"size_bytes": len(data), "missing": "the store failed"}

    def _data(self, value: str, mime: str) -> bytes:
        if medium(mime).binary:
            return base64.b64decode(value, validate=True)
        return self.redact(value).encode()


def _is_short(data: bytes, mime: str) -> bool:
    kind = medium(mime)
    shown = mime.startswith("image/") or kind.linked
    return len(data) <= MAX_INLINE_BYTES and not kind.binary and not shown


def _distinct(forms: Mapping[str, str]) -> dict[str, str]:
    """Return the forms worth keeping: a picture that comes in several pixel formats once."""
    pixels = [mime for mime in MEDIA if mime in forms and medium(mime).seen]
    left_out = _IN_THE_MESSAGE.union(pixels[1:])
    return {mime: value for mime, value in forms.items() if mime not in left_out}


def links(entries: Sequence[Entry], url: Callable[[str], str | None]) -> str:
    """Word the entries for model and human, a line each: Markdown that shows images and links the rest.

    Args:
        entries: what is said of short texts is left out: they are in the message.
        url: from an artifact's name to its address, or None where none is known.
    """
    return "\n".join(_line(entry, url) for entry in entries if "text" not in entry)


def _line(entry: Entry, url: Callable[[str], str | None]) -> str:
    what = f"{entry['mime']}, {entry['size_bytes']} bytes"
    if missing := entry.get("missing"):
        return f"[{what}: not kept, {missing}]"
    if not (address := url(entry["name"])):
        return f"[{entry['title']}: {what}, artifact {entry['name']}]"
    return f"{'!' if entry['mime'].startswith('image/') else ''}[{entry['title']}]({address})"
