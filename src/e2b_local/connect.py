"""The Connect protocol, JSON codec only: unary replies, stream envelopes and errors."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import AsyncGenerator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from e2b_local.bodies import whole_body
from e2b_local.headers import whole_number
from e2b_local.inbox.wire import MAX_FRAME_BYTES, Message, OpError
from e2b_local.messages import Kind, MessageError, parsed

_ENVELOPE = struct.Struct(">BI")
_END_OF_STREAM = 0x02
STREAM_TYPE = "application/connect+json"

# The HTTP status of each code, for unary calls only: a stream is always 200, its last envelope has the error.
_STATUS = {
    "canceled": 499,
    "unknown": 500,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "out_of_range": 400,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "data_loss": 500,
    "unauthenticated": 401,
}


def http_status(code: str) -> int:
    """Return the HTTP status of a Connect code."""
    return _STATUS.get(code, 500)


def error_response(error: OpError) -> Response:
    """Return a failed unary call's reply."""
    return JSONResponse({"code": error.code, "message": error.message}, http_status(error.code))


def envelope(payload: bytes) -> bytes:
    """Wrap one message of a stream."""
    return _ENVELOPE.pack(0, len(payload)) + payload


def end_envelope(error: OpError | None = None) -> bytes:
    """Return the envelope that ends a stream, with or without an error."""
    body: dict[str, Any] = {} if error is None else {"error": {"code": error.code, "message": error.message}}
    payload = json.dumps(body).encode()
    return _ENVELOPE.pack(_END_OF_STREAM, len(payload)) + payload


async def unary_message(request: Request, kind: Kind) -> Message:
    """Return the message of a unary call, an empty body being none, as with E2B's daemon.

    Raises:
        OpError: it is not of this kind; so do all of these.
        ApiError: 413, it is too large.
    """
    return _message(await whole_body(request, MAX_FRAME_BYTES), kind)


async def stream_message(request: Request, kind: Kind) -> Message:
    """Return the one message of a call whose reply is a stream."""
    body = await whole_body(request, MAX_FRAME_BYTES)
    if len(body) < _ENVELOPE.size:
        raise OpError("invalid_argument", "the request has no message")
    flags, length = _ENVELOPE.unpack_from(body)
    if flags & 0x01:
        raise OpError("unimplemented", "compressed messages are not supported")
    return _message(body[_ENVELOPE.size : _ENVELOPE.size + length], kind)


async def stream_messages(request: Request, kind: Kind) -> AsyncGenerator[Message, None]:
    """Yield the messages of a call whose request is a stream, as they arrive."""
    left = bytearray()
    async for piece in request.stream():
        left += piece
        while len(left) >= _ENVELOPE.size:
            flags, length = _ENVELOPE.unpack_from(left)
            if flags or length > MAX_FRAME_BYTES:
                raise OpError("invalid_argument", "a message is compressed or too large")
            end = _ENVELOPE.size + length
            if len(left) < end:
                break
            payload = bytes(left[_ENVELOPE.size : end])
            del left[:end]
            yield _message(payload, kind)


def timeout_ms(request: Request) -> int | None:
    """Return the client's deadline for this call in milliseconds, or None if it has none.

    Raises:
        OpError: it is no number; without its deadline the call could go on for longer than was asked for.
    """
    value = request.headers.get("connect-timeout-ms")
    if value is None:
        return None
    deadline = whole_number(value)
    if deadline is None:
        raise OpError("invalid_argument", "Connect-Timeout-Ms must be a whole number of at most ten digits")
    return deadline or None


def requested_user(request: Request) -> str | None:
    """Return the user a call is to run as: the name in basic authentication, or None for the default."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(value).decode().partition(":")[0]
    except ValueError:
        return ""


def _message(payload: bytes, kind: Kind) -> Message:
    try:
        message: Message = kind("", parsed(payload))
    except MessageError as exc:
        raise OpError("invalid_argument", str(exc)) from exc
    return message
