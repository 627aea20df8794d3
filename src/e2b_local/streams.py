"""Replies that are streamed until their end, the client's or the sandbox's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from e2b_local.agent_client import BoxGoneError
from e2b_local.sandbox import Interruption, Sandbox


class StreamReply(Response):
    """A streamed reply that notices at once when its client hangs up.

    A source that raises BoxGoneError, or an interruption without last words, leaves the body unfinished: the
    server then drops the connection, which makes the SDK ask whether the sandbox still lives. A clean end, or
    a 5xx, would be taken for the program's own result.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        source: AsyncGenerator[bytes, None],
        *,
        media_type: str,
        keepalive: bytes,
        interval_s: float,
        last_words: Callable[[Interruption], bytes | None],
    ) -> None:
        super().__init__(media_type=media_type)
        # Response.__init__ fixes an empty body's length; a stream has none.
        self.raw_headers = [header for header in self.raw_headers if header[0] != b"content-length"]
        self._sandbox = sandbox
        self._source = source
        self._keepalive = keepalive
        self._interval_s = interval_s
        self._last_words = last_words

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream the reply."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        hangup = asyncio.create_task(_hangup(receive))
        piece: asyncio.Task[bytes] | None = None
        try:
            with self._sandbox.stream() as interrupted:
                while True:
                    piece = piece or asyncio.create_task(_next(self._source))
                    events: set[asyncio.Future[Any]] = {piece, hangup, interrupted}
                    await asyncio.wait(
                        events,
                        timeout=self._interval_s,
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    if hangup.done():
                        return
                    if piece.done():
                        try:
                            data = piece.result()
                        except StopAsyncIteration:
                            break
                        except BoxGoneError:
                            return
                        piece = None
                        await send(_chunk(data))
                    elif interrupted.done():
                        words = self._last_words(interrupted.result())
                        if words is None:
                            return
                        await send(_chunk(words))
                        break
                    else:
                        await send(_chunk(self._keepalive))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            for task in (hangup, piece):
                if task is not None:
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError, Exception):
                        await task
            await self._source.aclose()


def _chunk(data: bytes) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": True}


async def _next(source: AsyncGenerator[bytes, None]) -> bytes:
    return await anext(source)


async def _hangup(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
