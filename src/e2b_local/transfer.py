"""File contents in and out of a sandbox, piece by piece."""

from __future__ import annotations

import asyncio
import contextlib
import mimetypes
import urllib.parse
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from e2b_local.agent_client import BoxGoneError, final, outcome
from e2b_local.forms import Form, FormError
from e2b_local.inbox.wire import CHUNK_BYTES, Channel, OpError
from e2b_local.messages import MessageError, text
from e2b_local.sandbox import Sandbox

_METADATA_HEADER = "x-metadata-"
_GZIP_WBITS = 31


async def download(sandbox: Sandbox, request: Request) -> Response:
    """Reply with a file's bytes, compressed if the client asks for gzip."""
    path = _path(request.query_params.get("path", ""))
    stack = contextlib.AsyncExitStack()
    try:
        channel = await stack.enter_async_context(sandbox.box.agent.open("read", path=path))
        first = await channel.receive()
        if isinstance(first, bytes):
            raise BoxGoneError
        if first is None or "size" not in first:
            outcome(first)
            raise BoxGoneError
    except BaseException:
        await stack.aclose()
        raise
    headers = {
        "content-disposition": f"inline; filename*=UTF-8''{urllib.parse.quote(path.rpartition('/')[2])}",
        # A page of the sandbox's runs no script with the origin of this address, which is one of localhost.
        "content-security-policy": "sandbox",
        "x-content-type-options": "nosniff",
    }
    pieces = _pieces(stack, channel)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        pieces = _compressed(pieces)
    elif first["size"] is not None:
        headers["content-length"] = str(int(first["size"]))
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return StreamingResponse(pieces, media_type=kind, headers=headers)


async def upload(sandbox: Sandbox, request: Request) -> Response:
    """Write the file or files of a request; the reply names each."""
    metadata = {
        name[len(_METADATA_HEADER) :]: value
        for name, value in request.headers.items()
        if name.startswith(_METADATA_HEADER)
    }
    content_type = request.headers.get("content-type", "")
    if not content_type.startswith("multipart/"):
        data = request.stream()
        if request.headers.get("content-encoding") == "gzip":
            data = _expanded(data)
        return JSONResponse([await _write(sandbox, request.query_params.get("path", ""), data, metadata)])
    try:
        written = await _write_parts(sandbox, request, metadata)
    except FormError as exc:
        raise OpError("invalid_argument", f"the form cannot be read: {exc}") from exc
    if not written:
        raise OpError("invalid_argument", "no file in the request: a part named 'file' is one")
    return JSONResponse(written)


async def _write_parts(sandbox: Sandbox, request: Request, metadata: dict[str, str]) -> list[dict[str, Any]]:
    """Write each part of a form that is a file: one named `file`, as E2B has it, or with a name of a file."""
    written: list[dict[str, Any]] = []
    named = request.query_params.get("path")
    form = Form(request.headers.get("content-type", ""), request.stream())
    async for part, data in form.parts():
        if part.name != "file" and not part.filename:
            continue  # another field of a page's form
        if named and written:
            raise OpError(
                "invalid_argument",
                f"you cannot upload multiple files to the same path '{named}' in one upload request, "
                "only the first specified file was uploaded",
            )
        written.append(await _write(sandbox, named or part.filename, data, metadata))
    return written


async def _write(
    sandbox: Sandbox, path: str, data: AsyncIterator[bytes], metadata: dict[str, str]
) -> dict[str, Any]:
    if not path:
        raise OpError("invalid_argument", "no path is given")
    async with sandbox.box.agent.open("write", path=_path(path), metadata=metadata) as channel:
        sending = asyncio.create_task(_send(channel, data))
        done = asyncio.create_task(final(channel))
        try:
            # The agent answers early when it cannot write: then the rest is not read from the client.
            await asyncio.wait({sending, done}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and sending.exception() is not None and not done.done():
                sending.result()
            return await done
        finally:
            for task in (sending, done):
                task.cancel()
            await asyncio.gather(sending, done, return_exceptions=True)


def _path(given: str) -> str:
    try:
        return text("path", given)
    except MessageError as exc:
        raise OpError("invalid_argument", str(exc)) from exc


async def _send(channel: Channel, data: AsyncIterator[bytes]) -> None:
    async for piece in data:
        for start in range(0, len(piece), CHUNK_BYTES):
            await channel.send_data(piece[start : start + CHUNK_BYTES])
    await channel.send({"end": True})


async def _pieces(stack: contextlib.AsyncExitStack, channel: Channel) -> AsyncGenerator[bytes, None]:
    async with stack:
        while isinstance(piece := await channel.receive(), bytes):
            yield piece
        outcome(piece)


async def _compressed(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    compressor = zlib.compressobj(wbits=_GZIP_WBITS)
    async for piece in pieces:
        if data := await asyncio.to_thread(compressor.compress, piece):
            yield data
    yield compressor.flush()


async def _expanded(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    expander = zlib.decompressobj(wbits=_GZIP_WBITS)
    try:
        async for piece in pieces:
            # Bounded output: a small upload may expand to anything.
            data = expander.decompress(piece, CHUNK_BYTES)
            while data:
                yield data
                data = expander.decompress(expander.unconsumed_tail, CHUNK_BYTES)
    except zlib.error as exc:
        raise OpError("invalid_argument", f"error decompressing body: {exc}") from exc
    if not expander.eof:
        raise OpError("invalid_argument", "error decompressing body: unexpected end")
