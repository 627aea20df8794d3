"""What routes that change a thread between its runs have in common: is it free, and what was sent."""

from typing import Any

import httpx
from starlette.exceptions import HTTPException
from starlette.requests import Request


async def free_thread(threads: Any, thread_id: str, graph: str) -> dict[str, Any]:
    """Return a thread's state, if nothing is going on in it; a thread without a graph becomes the graph's.

    Args:
        threads: the server's own threads, as the SDK has them.
        thread_id: the thread.
        graph: the graph that its next run is of.

    Raises:
        HTTPException: a run works, a question is open, or the thread is another graph's.
    """
    try:
        thread = await threads.get(thread_id)
        state = await threads.get_state(thread_id)
    except httpx.HTTPStatusError as exc:
        raise HTTPException(404, "there is no such thread") from exc
    if thread["status"] == "busy":
        raise HTTPException(409, "a run of this thread is busy; upload when it has ended")
    if state["interrupts"]:
        raise HTTPException(409, "this thread waits for an answer; answer it, or use another thread")
    of = (thread.get("metadata") or {}).get("graph_id")
    if of not in {None, graph}:
        raise HTTPException(409, f"this thread belongs to the graph {of!r}")
    if of is None:
        # A thread without a run has no graph yet, and without a graph no state.
        await threads.update(thread_id, metadata={"graph_id": graph})
    return dict(state["values"] or {})


async def body_of(request: Request, max_bytes: int) -> bytes:
    """Return a request's body.

    Raises:
        HTTPException: it is larger; not more than that is read.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise HTTPException(413, f"at most {max_bytes} bytes can be uploaded")
    return bytes(body)
