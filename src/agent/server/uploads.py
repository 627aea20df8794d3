"""Taking in a project as an archive: it goes into the thread's sandbox, never into state."""

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agent.errors import InputError, SandboxError
from agent.repair.archive import MAX_ARCHIVE_BYTES, check_archive
from agent.repair.lasting import NAME
from agent.repair.workspace import Workspace
from agent.sandbox.manager import SandboxManager
from agent.server.access import for_thread, signed
from agent.server.bodies import Bodies
from agent.server.intake import Intake, own_threads
from agent.server.signing import signer
from agent.settings import Settings

ADDRESS_NAME = "project"


def upload_routes(
    settings: Settings,
    manager: SandboxManager,
    threads: Callable[[], Any] = own_threads,
    bodies: Bodies | None = None,
) -> list[BaseRoute]:
    """Return `POST /uploads/{thread_id}` and `PUT /uploads/{thread_id}/{name}` (signed).

    The first is for whoever may change the thread, and answers with the signed address of the second, which
    takes the archive's bytes and needs no header.

    Args:
        settings: the key and how long addresses hold.
        manager: where the thread's sandbox comes from.
        threads: called in a request; default the server's own threads.
        bodies: the uploads that are under way in the app; default those of these routes alone.
    """
    bodies = bodies or Bodies()
    intake = Intake(manager, NAME, "summarize", threads)

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
        known = await intake.free(thread_id)
        async with bodies.taken(request, MAX_ARCHIVE_BYTES) as body:
            try:
                files = await asyncio.to_thread(check_archive, body.file)
            except InputError as exc:
                raise HTTPException(422, str(exc)) from exc
            await asyncio.to_thread(body.file.seek, 0)
            kept = {"sha256": body.sha256, "size_bytes": body.size_bytes}
            try:
                await intake.put(
                    thread_id,
                    known.get("sandbox_id", ""),
                    lambda box: Workspace(box).upload_archive(body.file),
                    {"project": {}, "archive": kept},
                )
            except SandboxError as exc:
                raise HTTPException(502, f"the archive could not be put into a sandbox: {exc}") from exc
        return JSONResponse(kept | {"files": files})

    return [
        Route("/uploads/{thread_id:thread}", address, methods=["POST"]),
        Route("/uploads/{thread_id:thread}/{name}", archive, methods=["PUT"]),
    ]
