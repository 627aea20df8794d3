"""HTTP to a port that a program of a sandbox listens on, through the agent inside."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import h11
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from e2b_local.agent_client import BoxGoneError, outcome
from e2b_local.errors import ApiError, port_closed_traffic
from e2b_local.inbox.wire import Channel, OpError
from e2b_local.sandbox import Sandbox

_READ_BYTES = 64 * 1024
_LAST_STATUS = 599
# Headers that speak of one connection only, and those by which this server was told where to go.
_HOP = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"upgrade"})
_OURS = frozenset({b"e2b-sandbox-id", b"e2b-sandbox-port", b"e2b-traffic-access-token", b"x-access-token"})


async def forward(sandbox: Sandbox, port: int, request: Request) -> Response:
    """Pass one request to the sandbox's own loopback and its reply back, both as streams.

    Raises:
        BoxGoneError: the sandbox ended, or the program closed the connection without a reply.
    """
    stack = contextlib.AsyncExitStack()
    try:
        channel = await stack.enter_async_context(sandbox.box.agent.open("connect_port", port=port))
        first = await channel.receive()
        if not isinstance(first, dict) or "connected" not in first:
            outcome(first if isinstance(first, dict) else None)
            raise BoxGoneError
        # From here on the channel carries the connection's own bytes.
        connection = h11.Connection(our_role=h11.CLIENT)
        channel.writer.write(connection.send(_start(request, _host(sandbox, port))) or b"")
        sending = asyncio.create_task(_send(connection, channel, request))
        stack.push_async_callback(_settle, sending)
        reply = await _next(connection, channel)
        while isinstance(reply, h11.InformationalResponse):
            reply = await _next(connection, channel)
        if not isinstance(reply, h11.Response) or reply.status_code > _LAST_STATUS:
            raise BoxGoneError
    except OpError:
        await stack.aclose()
        return port_closed_traffic(sandbox.id, port)
    except h11.RemoteProtocolError as exc:
        await stack.aclose()
        raise BoxGoneError from exc
    except h11.LocalProtocolError as exc:
        # What this server's own reader let pass, and HTTP does not.
        await stack.aclose()
        raise ApiError(400, f"the request cannot be passed on: {exc}") from exc
    except BaseException:
        await stack.aclose()
        raise
    response = StreamingResponse(_body(stack, connection, channel), reply.status_code)
    # Replies that have no body must not promise one.
    left_out = (
        _HOP | {b"transfer-encoding"} | ({b"content-length"} if reply.status_code in (204, 304) else set())
    )
    response.raw_headers = [(name, value) for name, value in reply.headers if name not in left_out]
    return response


def _host(sandbox: Sandbox, port: int) -> bytes | None:
    mask = sandbox.request.network.get("maskRequestHost")
    return str(mask).replace("${PORT}", str(port)).encode() if mask else None


def _start(request: Request, host: bytes | None) -> h11.Request:
    headers = [(name, value) for name, value in request.scope["headers"] if name not in _HOP | _OURS]
    if host is not None:
        headers = [(name, host if name == b"host" else value) for name, value in headers]
    headers.append((b"connection", b"close"))
    target = request.scope["raw_path"]
    if request.scope["query_string"]:
        target += b"?" + request.scope["query_string"]
    return h11.Request(method=request.method, target=target, headers=headers)


async def _send(connection: h11.Connection, channel: Channel, request: Request) -> None:
    async for piece in request.stream():
        channel.writer.write(connection.send(h11.Data(data=piece)) or b"")
        await channel.writer.drain()
    channel.writer.write(connection.send(h11.EndOfMessage()) or b"")
    await channel.writer.drain()


async def _next(connection: h11.Connection, channel: Channel) -> object:
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await channel.reader.read(_READ_BYTES))
    return event


async def _body(
    stack: contextlib.AsyncExitStack, connection: h11.Connection, channel: Channel
) -> AsyncGenerator[bytes, None]:
    async with stack:
        try:
            while isinstance(event := await _next(connection, channel), h11.Data):
                yield bytes(event.data)
        except h11.RemoteProtocolError as exc:  # it ended before its end
            raise BoxGoneError from exc


async def _settle(sending: asyncio.Task[None]) -> None:
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
