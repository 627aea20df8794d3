"""Taking in a project as an archive: it goes into the thread's sandbox, never into state."""

import asyncio
import hashlib
import uuid
from collections.abc import Callable
from typing import Any

import httpx
from langgraph_sdk import get_client
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agent.errors import InputError, SandboxError
from agent.repair.archive import MAX_ARCHIVE_BYTES, check_archive
from agent.repair.lasting import NAME
from agent.repair.workspace import Workspace
from agent.sandbox.live import box
from agent.sandbox.manager import SandboxManager
from agent.sandbox.owners import Owner
from agent.server.access import for_thread, signed
from agent.server.intake import body_of, free_thread
from agent.server.signing import signer
from agent.settings import Settings

ADDRESS_NAME = "project"


def _own_threads() -> Any:
    # The server's own API, without its authentication: the route's guard has asked already.
    return get_client().threads


def upload_routes(
    settings: Settings, manager: SandboxManager, threads: Callable[[], Any] = _own_threads
) -> list[BaseRoute]:
    """Return `POST /uploads/{thread_id}` and `PUT /uploads/{thread_id}/{name}` (signed).

    The first is for whoever may change the thread, and answers with the signed address of the second, which
    takes the archive's bytes and needs no header.

    Args:
        settings: the key and how long addresses hold.
        manager: where the thread's sandbox comes from.
        threads: called in a request; default the server's own threads.
    """

    @for_thread("change")
    async def address(request: Request) -> Response:
        """Return the address to send an archive to."""
        base = settings.public_address or str(request.base_url).rstrip("/")
        thread_id = request.path_params["thread_id"]
        url = (await signer(settings)).address(base, "upload", thread_id, ADDRESS_NAME)
        said = {"url": url, "max_bytes": MAX_ARCHIVE_BYTES}
        return JSONResponse(said, headers={"Cache-Control": "no-store"})

    @signed("upload", settings)
    async def archive(request: Request) -> Response:
        """Take an archive in."""
        thread_id = request.path_params["thread_id"]
        known = await free_thread(threads(), thread_id, NAME)
        data = await body_of(request, MAX_ARCHIVE_BYTES)
        try:
            files = await asyncio.to_thread(check_archive, data)
        except InputError as exc:
            raise HTTPException(422, str(exc)) from exc
        kept = {"sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)}
        try:
            await _take_in(threads(), manager, thread_id, known, data, kept)
        except SandboxError as exc:
            raise HTTPException(502, f"the archive could not be put into a sandbox: {exc}") from exc
        return JSONResponse(kept | {"files": files})

    return [
        Route("/uploads/{thread_id}", address, methods=["POST"]),
        Route("/uploads/{thread_id}/{name}", archive, methods=["PUT"]),
    ]


async def _take_in(
    threads: Any, manager: SandboxManager, thread_id: str, known: dict[str, Any], data: bytes, kept: Any
) -> None:
    """Put the archive into the thread's sandbox, pause it, and write down where it is.

    The next run adopts the sandbox. What was made here is ended if the thread cannot be told of it.
    """
    run = f"upload-{uuid.uuid4()}"
    owner = Owner(graph=NAME, thread=thread_id, run=run, task=run)
    # Kept, however the deployment keeps sandboxes: there is no run yet whose end could be its end.
    policy = manager.policy.model_copy(update={"keep": "thread"})
    acquired = await manager.acquire(owner, known.get("sandbox_id", ""), policy)
    told = False
    try:
        await Workspace(box(acquired.handle)).put_archive(data)
        values = {"project": {}, "archive": kept, "sandbox_id": acquired.sandbox_id}
        await threads.update_state(thread_id, values, as_node="summarize")
        told = True
    except httpx.HTTPStatusError as exc:
        raise HTTPException(exc.response.status_code, "a run of this thread has begun meanwhile") from exc
    finally:
        ours = acquired.how in {"created", "replaced"}
        ending = policy if told or not ours else policy.model_copy(update={"keep": "run"})
        await manager.release(owner, acquired.sandbox_id, ending)
