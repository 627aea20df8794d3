"""Serving a thread's artifacts: one by its signed address, and the list with fresh addresses."""

import time
from collections.abc import Callable

from langgraph.config import get_store
from langgraph.store.base import BaseStore
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agent.artifacts.media import medium
from agent.artifacts.shelf import Reference, Shelf
from agent.server.access import for_thread, signed
from agent.server.signing import signer
from agent.settings import Settings

# What a model wrote comes from the server's own origin. A browser that opens it gets it without scripts,
# forms or the right to load anything, as an origin of its own; what could hold scripts is a download besides.
_SAFE = {
    "Content-Security-Policy": "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


def artifact_routes(settings: Settings, store: Callable[[], BaseStore] = get_store) -> list[BaseRoute]:
    """Return `GET /artifacts/{thread_id}/{name}` (signed) and `GET /artifacts/{thread_id}`.

    Args:
        settings: the key and how long addresses hold.
        store: called in a request; default the server's own.
    """

    @signed("artifact", settings)
    async def one(request: Request) -> Response:
        """Return an artifact's bytes."""
        found = await Shelf(store(), request.path_params["thread_id"]).bytes_of(request.path_params["name"])
        if found is None:
            raise HTTPException(404, "there is no such artifact any more")
        return _served(*found, max_age_s=int(request.query_params["expires"]) - int(time.time()))

    @for_thread("read")
    async def all_of_thread(request: Request) -> Response:
        """Return what a thread has, each with a fresh address."""
        thread_id = request.path_params["thread_id"]
        references = await Shelf(store(), thread_id).references()
        signing = await signer(settings)
        base = settings.public_address or str(request.base_url).rstrip("/")
        listed = [
            reference | {"url": signing.address(base, "artifact", thread_id, reference["name"])}
            for reference in references
        ]
        return JSONResponse(listed, headers={"Cache-Control": "no-store"})

    # A signature is for an id as it is written, so any will do: a program of one's own may name its threads.
    return [
        Route("/artifacts/{thread_id}/{name}", one),
        Route("/artifacts/{thread_id:thread}", all_of_thread),
    ]


def _served(data: bytes, reference: Reference, max_age_s: int) -> Response:
    kind = medium(reference["mime"])
    disposition = "inline" if kind.inline else "attachment"
    headers = _SAFE | {
        "Content-Disposition": f'{disposition}; filename="{reference["name"]}"',
        # Named by what it holds, so it never changes; private, since whoever has the address may see it.
        "Cache-Control": f"private, max-age={max(max_age_s, 0)}, immutable",
    }
    # Starlette adds the charset to text types.
    return Response(data, media_type=kind.served or reference["mime"], headers=headers)
