"""Taking in a file for a chat: it goes into the thread's sandbox, never into state."""

from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agent.errors import SandboxError
from agent.sandbox.manager import SandboxManager
from agent.server.access import for_thread
from agent.server.bodies import Bodies
from agent.server.intake import Intake, own_threads
from agent.tools.paths import HOME

GRAPH = "agent"
MAX_FILE_BYTES = 50_000_000
_LAST_NODE = "SandboxMiddleware.after_agent"


def file_routes(
    manager: SandboxManager, threads: Callable[[], Any] = own_threads, bodies: Bodies | None = None
) -> list[BaseRoute]:
    """Return `PUT /files/{thread_id}/{name}`, for whoever may change the thread.

    The body is the file; the answer is `{"path", "size_bytes"}`. The thread's sandbox is made if there is
    none, and paused afterwards; the thread's next run finds it.

    Args:
        manager: where the thread's sandbox comes from.
        threads: called in a request; default the server's own threads.
        bodies: the uploads that are under way in the app; default those of these routes alone.
    """
    bodies = bodies or Bodies()
    intake = Intake(manager, GRAPH, _LAST_NODE, threads)

    @for_thread("change")
    async def put(request: Request) -> Response:
        """Take a file in."""
        thread_id, name = request.path_params["thread_id"], request.path_params["name"]
        if name in {"", ".", ".."} or "/" in name or "\0" in name or len(name.encode()) > 255:
            raise HTTPException(422, f"{name!r} cannot be the name of a file")
        known = await intake.free(thread_id)
        path = f"{HOME}/{name}"
        async with bodies.taken(request, MAX_FILE_BYTES) as body:
            try:
                await intake.put(
                    thread_id, known.get("sandbox_id", ""), lambda box: box.upload(path, body.file)
                )
            except SandboxError as exc:
                raise HTTPException(502, f"the file could not be put into a sandbox: {exc}") from exc
        return JSONResponse({"path": path, "size_bytes": body.size_bytes})

    return [Route("/files/{thread_id:thread}/{name}", put, methods=["PUT"])]
