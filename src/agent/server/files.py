"""Taking in a file for a chat: it goes into the thread's sandbox, never into state."""

import uuid
from collections.abc import Callable
from typing import Any

import httpx
from langgraph_sdk import get_client
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agent.errors import SandboxError
from agent.sandbox.live import box
from agent.sandbox.manager import SandboxManager
from agent.sandbox.owners import Owner
from agent.server.access import for_thread
from agent.server.intake import body_of, free_thread

GRAPH = "agent"
HOME = "/home/user"
MAX_FILE_BYTES = 50_000_000
_LAST_NODE = "SandboxMiddleware.after_agent"
"""The state is written as the graph's last node would: nothing is left to run."""


def _own_threads() -> Any:
    # The server's own API, without its authentication: the route's guard has asked already.
    return get_client().threads


def file_routes(manager: SandboxManager, threads: Callable[[], Any] = _own_threads) -> list[BaseRoute]:
    """Return `PUT /files/{thread_id}/{name}`, for whoever may change the thread.

    The body is the file; the answer is `{"path", "size_bytes"}`. The thread's sandbox is made if there is
    none, and paused afterwards; the thread's next run finds it.

    Args:
        manager: where the thread's sandbox comes from.
        threads: called in a request; default the server's own threads.
    """

    @for_thread("change")
    async def put(request: Request) -> Response:
        """Take a file in."""
        thread_id, name = request.path_params["thread_id"], request.path_params["name"]
        if name in {"", ".", ".."} or "/" in name or "\0" in name or len(name.encode()) > 255:
            raise HTTPException(422, f"{name!r} cannot be the name of a file")
        known = await free_thread(threads(), thread_id, GRAPH)
        data = await body_of(request, MAX_FILE_BYTES)
        path = f"{HOME}/{name}"
        try:
            await _take_in(threads(), manager, thread_id, known.get("sandbox_id", ""), {path: data})
        except SandboxError as exc:
            raise HTTPException(502, f"the file could not be put into a sandbox: {exc}") from exc
        return JSONResponse({"path": path, "size_bytes": len(data)})

    return [Route("/files/{thread_id}/{name}", put, methods=["PUT"])]


async def _take_in(
    threads: Any, manager: SandboxManager, thread_id: str, known: str, files: dict[str, bytes]
) -> None:
    """Put files into the thread's sandbox, pause it, and write down which it is.

    What was made here is ended if the thread cannot be told of it.
    """
    run = f"upload-{uuid.uuid4()}"
    owner = Owner(graph=GRAPH, thread=thread_id, run=run, task=run)
    # Kept, however the deployment keeps sandboxes: there is no run yet whose end could be its end.
    policy = manager.policy.model_copy(update={"keep": "thread"})
    acquired = await manager.acquire(owner, known, policy)
    told = False
    try:
        await box(acquired.handle).write_files(files)
        await threads.update_state(thread_id, {"sandbox_id": acquired.sandbox_id}, as_node=_LAST_NODE)
        told = True
    except httpx.HTTPStatusError as exc:
        raise HTTPException(exc.response.status_code, "a run of this thread has begun meanwhile") from exc
    finally:
        ours = acquired.how in {"created", "replaced"}
        ending = policy if told or not ours else policy.model_copy(update={"keep": "run"})
        await manager.release(owner, acquired.sandbox_id, ending)
