"""The sandbox daemon's port (49983): health, the filesystem and process services."""

from __future__ import annotations

import hmac
from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from e2b_local import connect
from e2b_local.agent_client import BoxGoneError, outcome
from e2b_local.errors import not_found_traffic
from e2b_local.headers import whole_number
from e2b_local.inbox.wire import Message, OpError
from e2b_local.messages import MESSAGES
from e2b_local.sandbox import Interruption, Sandbox
from e2b_local.streams import StreamReply
from e2b_local.template import USER
from e2b_local.transfer import download, upload

PORT = 49983
_UNAUTHORIZED = "unauthorized access, please provide a valid access token or method signing if supported"
# Used when the client names no interval of its own.
_KEEPALIVE_S = 90.0
_PROCESS_KEEPALIVE = b'{"event": {"keepalive": {}}}'
_WATCH_KEEPALIVE = b'{"keepalive": {}}'

_UNARY = {
    "/filesystem.Filesystem/Stat": "stat",
    "/filesystem.Filesystem/ListDir": "list",
    "/filesystem.Filesystem/MakeDir": "make_dir",
    "/filesystem.Filesystem/Move": "move",
    "/filesystem.Filesystem/Remove": "remove",
    "/filesystem.Filesystem/CreateWatcher": "watcher_create",
    "/filesystem.Filesystem/GetWatcherEvents": "watcher_fetch",
    "/filesystem.Filesystem/RemoveWatcher": "watcher_remove",
    "/process.Process/List": "process_list",
    "/process.Process/SendSignal": "process_signal",
    "/process.Process/SendInput": "process_input",
    "/process.Process/CloseStdin": "process_close_stdin",
    "/process.Process/Update": "process_update",
}
_STREAMS = {
    "/filesystem.Filesystem/WatchDir": "watch",
    "/process.Process/Start": "process_start",
    "/process.Process/Connect": "process_connect",
}
_INPUT = "/process.Process/StreamInput"


async def handle(sandbox: Sandbox, request: Request) -> Response:
    """Answer one request to a running sandbox's daemon."""
    path = request.scope["path"]  # not of request.url, which the Host header is a part of
    if path == "/health":
        return Response(status_code=204)
    if path == "/files":
        if not authorised(sandbox, request):
            return JSONResponse({"code": 401, "message": _UNAUTHORIZED}, 401)
        return await files(sandbox, request)
    if not authorised(sandbox, request):
        return connect.error_response(
            OpError(
                "unauthenticated",
                _UNAUTHORIZED,
            )
        )
    if request.method != "POST":
        return Response(status_code=405)
    try:
        user = connect.requested_user(request)
        if user is not None:
            check_user(user)
        if path in _UNARY:
            op = _UNARY[path]
            message = await connect.unary_message(request, MESSAGES[op])
            return JSONResponse(await sandbox.box.agent.call(op, **message))
        if path in _STREAMS:
            return await _stream(sandbox, request, _STREAMS[path])
        if path == _INPUT:
            return await _stream_input(sandbox, request)
    except OpError as exc:
        return connect.error_response(exc)
    except BoxGoneError:
        return not_found_traffic(sandbox.id)
    return Response("404 page not found", status_code=404)


def authorised(sandbox: Sandbox, request: Request) -> bool:
    """Whether a request carries this sandbox's access token."""
    return hmac.compare_digest(request.headers.get("x-access-token", "").encode(), sandbox.token.encode())


def check_user(name: str) -> None:
    """Raise OpError unless a program can run as this user here: only as the sandbox's own."""
    if name != USER:
        raise OpError("unauthenticated", f"invalid username: '{name}'")


async def files(sandbox: Sandbox, request: Request) -> Response:
    """Answer a transfer that has been authorised, by token or by signature."""
    try:
        user = request.query_params.get("username")
        if user:
            check_user(user)
        if request.method == "GET":
            return await download(sandbox, request)
        if request.method == "POST":
            return await upload(sandbox, request)
    except OpError as exc:
        status = 507 if exc.code == "resource_exhausted" else connect.http_status(exc.code)
        return JSONResponse({"code": status, "message": exc.message}, status)
    except BoxGoneError:
        return not_found_traffic(sandbox.id)
    return Response(status_code=405)


async def _stream(sandbox: Sandbox, request: Request, op: str) -> Response:
    try:
        message = await connect.stream_message(request, MESSAGES[op])
        message["timeout_ms"] = connect.timeout_ms(request)
    except OpError as exc:
        # A call whose reply is a stream is always 200; its error is in the last envelope.
        return Response(connect.end_envelope(exc), media_type=connect.STREAM_TYPE)
    interval_s = whole_number(request.headers.get("keepalive-ping-interval", ""))
    return StreamReply(
        sandbox,
        _events(sandbox, op, message),
        media_type=connect.STREAM_TYPE,
        keepalive=connect.envelope(_WATCH_KEEPALIVE if op == "watch" else _PROCESS_KEEPALIVE),
        interval_s=float(interval_s or _KEEPALIVE_S),
        last_words=_last_words,
    )


async def _stream_input(sandbox: Sandbox, request: Request) -> Response:
    agent = sandbox.box.agent
    selector: Message = {}
    try:
        async for message in connect.stream_messages(request, MESSAGES["process_stream_input"]):
            if "start" in message:
                selector = message["start"].get("process") or {}
                # Changes nothing, but tells at once when there is no such process.
                await agent.call("process_update", process=selector)
            elif "data" in message:
                await agent.call("process_input", process=selector, input=message["data"].get("input"))
    except OpError as exc:
        return Response(connect.end_envelope(exc), media_type=connect.STREAM_TYPE)
    return Response(connect.envelope(b"{}") + connect.end_envelope(), media_type=connect.STREAM_TYPE)


async def _events(sandbox: Sandbox, op: str, message: Message) -> AsyncGenerator[bytes, None]:
    error: OpError | None = None
    async with sandbox.box.agent.open(op, **message) as channel:
        try:
            while isinstance(event := await channel.receive(), bytes):
                yield connect.envelope(event)
            outcome(event)
        except OpError as exc:
            error = exc
    yield connect.end_envelope(error)


def _last_words(why: Interruption) -> bytes | None:
    if why is Interruption.KILLED:
        return None
    return connect.end_envelope(OpError("unavailable", "the sandbox was paused before the stream completed"))
