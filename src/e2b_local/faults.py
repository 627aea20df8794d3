"""Faults that tests ask for: slow, failing, cut off and lost replies, and late ones."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import random
import re
from typing import Any, Literal, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from e2b_local.errors import ApiError

Kind = Literal["delay", "status", "drop", "cut", "late", "lost"]
_TYPES: dict[str, tuple[type, ...]] = {
    "match": (str,),
    "sandbox_id": (str, type(None)),
    "times": (int,),
    "chance": (float, int),
    "seconds": (float, int),
    "status": (int,),
    "message": (str,),
    "headers": (dict,),
    "after_chunks": (int,),
}


@dataclasses.dataclass
class Fault:
    """One fault, for the next `times` requests that match.

    Kinds:
        delay: wait `seconds`, then serve the request.
        status: answer `status` with `message`, not serving the request.
        drop: close the connection, not serving the request.
        cut: serve the request, and close the connection after `after_chunks` pieces of the reply's body.
        late: serve the request, and hold its reply back for `seconds`.
        lost: serve the request to its end, then close the connection without any reply.
    """

    id: int
    kind: Kind
    match: re.Pattern[str]
    """Searched in `METHOD /path`, or for sandbox traffic in `METHOD port:/path`."""
    sandbox_id: str | None = None
    times: int = 1
    chance: float = 1.0
    """How likely a request that matches is hit, from 0 to 1."""
    seconds: float = 0.0
    status: int = 503
    message: str = "injected fault"
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    after_chunks: int = 0
    hits: int = 0

    def shown(self) -> dict[str, Any]:
        """Return the fault as JSON."""
        return dataclasses.asdict(dataclasses.replace(self, match=self.match.pattern))  # type: ignore[arg-type]


class _CutError(Exception):
    """The reply has been sent as far as it shall be."""


class Faults:
    """The faults in force, applied around an application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._faults: list[Fault] = []
        self._numbers = itertools.count(1)

    def add(self, wanted: dict[str, Any]) -> Fault:
        """Put a fault in force.

        Raises:
            ApiError: 400, it is not understood.
        """
        known = {field.name for field in dataclasses.fields(Fault)} - {"id", "hits"}
        if unknown := set(wanted) - known:
            raise ApiError(400, f"a fault has no {', '.join(sorted(unknown))}")
        if wanted.get("kind") not in get_args(Kind):
            raise ApiError(400, f"kind must be one of {', '.join(get_args(Kind))}")
        for name, kinds in _TYPES.items():
            if not isinstance(wanted.get(name, kinds[0]()), kinds):
                raise ApiError(400, f"{name} cannot be {wanted[name]!r}")
        try:
            match = re.compile(wanted.get("match", ""))
        except re.error as exc:
            raise ApiError(400, f"match is not a regular expression: {exc}") from exc
        fault = Fault(**(wanted | {"id": next(self._numbers), "match": match}))
        self._faults.append(fault)
        return fault

    def all(self) -> list[Fault]:
        """Return every fault since the last clearing, spent ones too, with its hits."""
        return list(self._faults)

    def clear(self) -> None:
        """Forget all faults."""
        self._faults.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, with the first fault that matches it."""
        fault = self._next(scope) if self._faults and scope["type"] == "http" else None
        if fault is None:
            await self._app(scope, receive, send)
            return
        fault.hits += 1
        match fault.kind:
            case "delay":
                await asyncio.sleep(fault.seconds)
                await self._app(scope, receive, send)
            case "status":
                body = {"code": fault.status, "message": fault.message}
                await JSONResponse(body, fault.status, headers=fault.headers)(scope, receive, send)
            case "drop":
                await _abort(receive)
            case "cut":
                await self._cut(fault.after_chunks, scope, receive, send)
            case "late":
                await self._late(fault.seconds, scope, receive, send)
            case "lost":
                await self._app(scope, receive, _swallow)
                await _abort(receive)

    def _next(self, scope: Scope) -> Fault | None:
        request = Request(scope)
        port = request.headers.get("e2b-sandbox-port")
        where = f"{port}:{scope['path']}" if port else scope["path"]
        for fault in self._faults:
            if fault.hits >= fault.times or not fault.match.search(f"{scope['method']} {where}"):
                continue
            if fault.sandbox_id not in (None, request.headers.get("e2b-sandbox-id")):
                continue
            if random.random() < fault.chance:
                return fault
        return None

    async def _cut(self, chunks: int, scope: Scope, receive: Receive, send: Send) -> None:
        left = chunks

        async def counting(message: Message) -> None:
            nonlocal left
            if message["type"] == "http.response.body":
                if left <= 0:
                    raise _CutError
                left -= 1
                message = {**message, "more_body": True}
            elif message["type"] == "http.response.start":
                # Without a length the reply is chunked, so that its missing end shows.
                headers = [each for each in message["headers"] if each[0].lower() != b"content-length"]
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self._app(scope, receive, counting)
        except _CutError:
            return

    async def _late(self, seconds: float, scope: Scope, receive: Receive, send: Send) -> None:
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        await self._app(scope, receive, hold)
        await asyncio.sleep(seconds)
        for message in held:
            await send(message)


async def _abort(receive: Receive) -> None:
    """Close the connection before any reply: ASGI has no word for it, and uvicorn would answer 500."""
    receive.__self__.transport.abort()  # type: ignore[attr-defined]
    while (await receive())["type"] != "http.disconnect":
        pass


async def _swallow(message: Message) -> None:
    pass
