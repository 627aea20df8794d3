"""Who may call a route: the holder of a signed address, or whoever may read or change the thread.

Every route of the app is one of the two; a test looks. `enable_custom_route_auth` is not used: it would ask
for a header on signed addresses too, which an `<img>` cannot send, and it knows nothing of whose a thread is.
"""

import functools
from collections.abc import Awaitable, Callable
from typing import Literal

import httpx
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agent.server.signing import Purpose, signer
from agent.settings import Settings

Endpoint = Callable[[Request], Awaitable[Response]]
Right = Literal["read", "change"]


class ThreadId(Convertor[str]):
    """A thread's id in a path, `{thread_id:thread}`, as the server writes it and in no other way.

    The server reads an id in capitals or without hyphens as the same thread; what is kept under a thread's
    name would not. A path with any other spelling, or with `..` in its place, is none of ours: 404.
    """

    regex = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

    def convert(self, value: str) -> str:
        """Return what stands in the path."""
        return value

    def to_string(self, value: str) -> str:
        """Return what stands in the path."""
        return value


register_url_convertor("thread", ThreadId())

_NOT_PASSED_ON = frozenset(
    {"host", "connection", "content-length", "content-type", "transfer-encoding", "origin"}
)


def signed(purpose: Purpose, settings: Settings) -> Callable[[Endpoint], Endpoint]:
    """Let only the holder of a signed address call the endpoint.

    Args:
        purpose: what the address must have been signed for, with the path's `thread_id` and `name`.
        settings: where the key is.
    """

    def guard(endpoint: Endpoint) -> Endpoint:
        @functools.wraps(endpoint)
        async def guarded(request: Request) -> Response:
            verdict = (await signer(settings)).check(
                purpose,
                request.path_params["thread_id"],
                request.path_params["name"],
                expires=request.query_params.get("expires", ""),
                signature=request.query_params.get("signature", ""),
            )
            if verdict == "expired":
                raise HTTPException(403, "this address has expired; ask for a fresh one")
            if verdict == "wrong":
                raise HTTPException(403, "this address is not signed for what it asks")
            return await endpoint(request)

        guarded.guarded_by = f"signature for {purpose}"  # type: ignore[attr-defined]
        return guarded

    return guard


def for_thread(right: Right) -> Callable[[Endpoint], Endpoint]:
    """Let only those call the endpoint who may read, or change, the thread that the path names.

    The route names the thread as `{thread_id:thread}`: the id that is asked about is the one that is used.
    The server itself is asked, with the caller's own headers: its authentication says who calls, its rules
    whose thread it is. Without authentication, as in development, everybody may.
    """

    def guard(endpoint: Endpoint) -> Endpoint:
        @functools.wraps(endpoint)
        async def guarded(request: Request) -> Response:
            await _ask_server(request, right)
            return await endpoint(request)

        guarded.guarded_by = f"right to {right} the thread"  # type: ignore[attr-defined]
        return guarded

    return guard


def for_callers(endpoint: Endpoint) -> Endpoint:
    """Let only those call the endpoint whom the server knows: without authentication, everybody."""

    @functools.wraps(endpoint)
    async def guarded(request: Request) -> Response:
        async with _server(request) as server:
            answer = await server.post("/assistants/search", json={"limit": 1})
        if answer.status_code != 200:
            status = answer.status_code if answer.status_code in (401, 403) else 502
            raise HTTPException(status, "the server does not know you")
        return await endpoint(request)

    guarded.guarded_by = "the server's authentication"  # type: ignore[attr-defined]
    return guarded


async def _ask_server(request: Request, right: Right) -> None:
    path = f"/threads/{request.path_params['thread_id']}"
    async with _server(request) as server:
        if right == "read":
            answer = await server.get(path)
        else:
            answer = await server.patch(path, json={"metadata": {}})
    if answer.status_code != 200:
        status = answer.status_code if answer.status_code in (401, 403, 404, 422) else 502
        raise HTTPException(status, f"you may not {right} this thread, or there is none")


def _server(request: Request) -> httpx.AsyncClient:
    """Return a client of the server itself, on behalf of who sent the request."""
    headers = {
        name: value
        for name, value in request.headers.items()
        # What a browser says of the page it comes from has been judged; this is the server's own request.
        if name not in _NOT_PASSED_ON and not name.startswith("sec-fetch-")
    }
    transport = httpx.ASGITransport(app=request.app)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers, timeout=30)
