"""The code interpreter's port (49999): running cells and managing contexts."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from e2b_local import connect
from e2b_local.agent_client import BoxGoneError, outcome
from e2b_local.errors import not_found_traffic
from e2b_local.inbox.wire import Channel, Message, OpError
from e2b_local.interpreter_requests import BodyError, ContextRequest, ExecuteRequest, read_body
from e2b_local.sandbox import Interruption, Sandbox
from e2b_local.streams import StreamReply

PORT = 49999
# A dead client is noticed only by writing to it.
_KEEPALIVE_S = 5.0
_KEEPALIVE = b'{"type": "keepalive"}\n'
_END = b'{"type": "end_of_execution"}\n'


async def handle(sandbox: Sandbox, request: Request) -> Response:
    """Answer one request to a running sandbox's code interpreter; needs no token, as the SDK sends none."""
    agent = sandbox.box.agent
    method, parts = request.method, request.scope["path"].strip("/").split("/")
    try:
        match (method, *parts):
            case ("GET", "health"):
                return JSONResponse("OK")
            case ("POST", "execute"):
                cell = await read_body(request, ExecuteRequest)
                return await _execute(sandbox, cell.model_dump(exclude_none=True))
            case ("GET", "contexts"):
                return JSONResponse((await agent.call("contexts"))["contexts"])
            case ("POST", "contexts"):
                wanted = await read_body(request, ContextRequest)
                return JSONResponse(
                    await agent.call("context_create", **wanted.model_dump(exclude_none=True))
                )
            case ("DELETE", "contexts", identifier):
                await agent.call("context_delete", context_id=identifier)
                return JSONResponse(None)
            case ("POST", "contexts", identifier, "restart"):
                await agent.call("context_restart", context_id=identifier)
                return JSONResponse(None)
    except BodyError as exc:
        return exc.response()
    except OpError as exc:
        return PlainTextResponse(exc.message, connect.http_status(exc.code))
    except BoxGoneError:
        return not_found_traffic(sandbox.id)
    return PlainTextResponse("Not Found", 404)


async def _execute(sandbox: Sandbox, request: Message) -> Response:
    if request.get("context_id") and request.get("language"):
        raise OpError("invalid_argument", "Only one of context_id or language can be provided")
    if request.get("context_id"):
        # Asked before the stream begins, since only then a status can be told.
        await sandbox.box.agent.call("context", context_id=request["context_id"])
    return StreamReply(
        sandbox,
        _lines(sandbox, request),
        media_type="application/x-ndjson",
        keepalive=_KEEPALIVE,
        interval_s=_KEEPALIVE_S,
        last_words=_no_last_words,
    )


async def _lines(sandbox: Sandbox, request: Message) -> AsyncGenerator[bytes, None]:
    async with sandbox.box.agent.open("execute", **request) as channel:
        async for line in _received(channel):
            yield json.dumps(line).encode() + b"\n"
    yield _END


async def _received(channel: Channel) -> AsyncGenerator[Message, None]:
    while isinstance(line := await channel.receive(), dict) and "type" in line:
        yield line
    try:
        outcome(line if isinstance(line, dict) else None)
    except OpError as exc:
        yield {"type": "error", "name": exc.code, "value": exc.message, "traceback": ""}


def _no_last_words(why: Interruption) -> bytes | None:
    # Cut off by a kill or a pause, a cell's stream is dropped: the SDK then asks whether the sandbox lives.
    return None
