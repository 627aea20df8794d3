"""One thread's artifacts in the LangGraph store: bytes once, by the hash of what they are.

Namespaces `("artifacts", thread_id, "list")` and `(…, "data")`, key `<hash>.<extension>`: two, so that
counting and listing read no bytes. The store takes JSON: bytes are base64.
"""

import base64
import hashlib
from dataclasses import dataclass
from typing import Any

from langgraph.store.base import BaseStore
from typing_extensions import TypedDict

from agent.artifacts.media import is_named, medium

MAX_BYTES = 5 * 1024 * 1024
"""Of one artifact."""
MAX_A_THREAD = 50


class Reference(TypedDict):
    """What state keeps of an artifact."""

    name: str
    mime: str
    size_bytes: int
    title: str


class ShelfFullError(Exception):
    """The artifact is too large, or the thread has too many; nothing was kept. Its text says which."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """One thread's artifacts."""

    store: BaseStore
    thread_id: str

    async def keep(self, data: bytes, mime: str, title: str = "") -> Reference:
        """Keep bytes; the same ones again cost nothing.

        Args:
            data: at most `MAX_BYTES`.
            mime: one that `medium` knows; another is kept as bytes to download.
            title: what it shows, in a few words.

        Raises:
            ShelfFullError: it is too large or there are too many.
        """
        mime = mime if is_named(mime) else "application/octet-stream"
        name = f"{hashlib.sha256(data).hexdigest()[:32]}.{medium(mime).extension}"
        reference = Reference(name=name, mime=mime, size_bytes=len(data), title=title)
        if len(data) > MAX_BYTES:
            raise ShelfFullError(f"{len(data)} bytes, and at most {MAX_BYTES} are kept")
        if await self.store.aget(self._namespace("list"), name):
            return reference
        # Parallel calls may each see one place left; the limit is against abuse, not an exact count.
        if len(await self.references()) >= MAX_A_THREAD:
            raise ShelfFullError(f"the thread has {MAX_A_THREAD} artifacts, which is the most")
        await self.store.aput(
            self._namespace("data"), name, {"base64": base64.b64encode(data).decode()}, index=False
        )
        await self.store.aput(self._namespace("list"), name, dict(reference), index=False)
        return reference

    async def bytes_of(self, name: str) -> tuple[bytes, Reference] | None:
        """Return an artifact, or None where there is none of that name."""
        item = await self.store.aget(self._namespace("list"), name)
        data = await self.store.aget(self._namespace("data"), name)
        return (base64.b64decode(data.value["base64"]), _reference(item.value)) if item and data else None

    async def references(self) -> list[Reference]:
        """Return what the thread has, oldest first."""
        items = await self.store.asearch(self._namespace("list"), limit=2 * MAX_A_THREAD)
        return [_reference(item.value) for item in sorted(items, key=lambda item: item.created_at)]

    def _namespace(self, part: str) -> tuple[str, str, str]:
        # A label has no full stops; a program of one's own may have them in a thread's id.
        return ("artifacts", self.thread_id.replace("%", "%25").replace(".", "%2E"), part)


def _reference(value: dict[str, Any]) -> Reference:
    return Reference(
        name=value["name"], mime=value["mime"], size_bytes=value["size_bytes"], title=value["title"]
    )
