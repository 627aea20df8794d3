"""Taking the body of an upload in: into a file of the host's, within a time, a few at once.

A body is held in no one's memory: whoever may upload could send as many at once as they like, slowly.
"""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import BinaryIO

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

_WRITTEN_AT_ONCE = 1_000_000
_MAX_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Body:
    """A body that has come in whole."""

    file: BinaryIO
    """At its start; gone when the request is answered."""
    size_bytes: int
    sha256: str


class Bodies:
    """The bodies that are being taken in by one app, which runs in one event loop.

    Args:
        places: how many at once; more are sent away.
        limit_s: how long one may take in all, in seconds.
        idle_s: how long one may bring nothing, in seconds.
    """

    def __init__(self, places: int = 8, limit_s: float = 300, idle_s: float = 20) -> None:
        self._free = places
        self._limit_s = limit_s
        self._idle_s = idle_s

    @asynccontextmanager
    async def taken(self, request: Request, max_bytes: int) -> AsyncIterator[Body]:
        """Take a request's body in; its place and its file are given back at the end of this.

        Raises:
            HTTPException: 413, it is larger, and not more than that is read; 408, it comes too slowly; 503,
                all places are taken.
        """
        length = request.headers.get("content-length", "")
        if len(length) > _MAX_DIGITS or (length.isdecimal() and int(length) > max_bytes):
            raise _too_large(max_bytes)
        if self._free <= 0:
            raise HTTPException(
                503, "too many uploads at once; send it again in a while", headers={"Retry-After": "10"}
            )
        self._free -= 1
        try:
            file = await asyncio.to_thread(tempfile.TemporaryFile)
            try:
                yield await self._written(request, file, max_bytes)
            finally:
                await asyncio.to_thread(file.close)
        finally:
            self._free += 1

    async def _written(self, request: Request, file: BinaryIO, max_bytes: int) -> Body:
        digest, size, waiting = hashlib.sha256(), 0, bytearray()

        def write(data: bytes) -> None:
            digest.update(data)
            file.write(data)

        try:
            async with asyncio.timeout(self._limit_s):
                chunks = request.stream()
                while True:
                    chunk = await asyncio.wait_for(anext(chunks, None), self._idle_s)
                    if chunk is None:
                        break
                    size += len(chunk)
                    if size > max_bytes:
                        raise _too_large(max_bytes)
                    waiting += chunk
                    if len(waiting) >= _WRITTEN_AT_ONCE:
                        await asyncio.to_thread(write, bytes(waiting))
                        waiting.clear()
        except TimeoutError:
            raise HTTPException(408, "the file came too slowly; send it again") from None
        except ClientDisconnect:
            raise HTTPException(400, "the file did not come to its end") from None
        await asyncio.to_thread(write, bytes(waiting))
        await asyncio.to_thread(file.seek, 0)
        return Body(file, size, digest.hexdigest())


def _too_large(max_bytes: int) -> HTTPException:
    return HTTPException(413, f"at most {max_bytes} bytes can be uploaded")
