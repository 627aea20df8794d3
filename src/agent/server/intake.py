"""Putting something into a thread's sandbox between its runs; never into its state."""

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from langgraph_sdk import get_client
from starlette.exceptions import HTTPException

from agent.sandbox.live import box
from agent.sandbox.manager import SandboxManager
from agent.sandbox.owners import Owner
from agent.sandbox.provider import Box


def own_threads() -> Any:
    """Return the server's own threads, without its authentication: a route's guard has asked already."""
    return get_client().threads


@dataclass(frozen=True, slots=True)
class Intake:
    """What the threads of one graph are given from outside.

    Args:
        manager: where sandboxes come from.
        graph: the graph that the threads' next runs are of.
        last_node: state is written as the graph's last node would: nothing is left to run.
        threads: called in a request; default the server's own threads, as the SDK has them.
    """

    manager: SandboxManager
    graph: str
    last_node: str
    threads: Callable[[], Any] = own_threads

    async def free(self, thread_id: str) -> dict[str, Any]:
        """Return a thread's state, if nothing is going on in it; one without a graph becomes this graph's.

        Raises:
            HTTPException: a run works, a question is open, or the thread is another graph's.
        """
        threads = self.threads()
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
        if of not in {None, self.graph}:
            raise HTTPException(409, f"this thread belongs to the graph {of!r}")
        if of is None:
            # A thread without a run has no graph yet, and without a graph no state.
            await threads.update(thread_id, metadata={"graph_id": self.graph})
        return dict(state["values"] or {})

    async def put(
        self,
        thread_id: str,
        sandbox_id: str,
        work: Callable[[Box], Awaitable[None]],
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Do the work in the thread's sandbox, pause it, and write down which it is; the next run adopts it.

        What was made here is ended if the thread cannot be told of it.

        Args:
            thread_id: a free thread.
            sandbox_id: the id in its state; empty means none.
            work: puts something into the sandbox.
            values: what else is written to the state.

        Raises:
            HTTPException: a run of the thread has begun meanwhile.
            SandboxError: it could not be put there.
        """
        run = f"upload-{uuid.uuid4()}"
        owner = Owner(graph=self.graph, thread=thread_id, run=run, task=run)
        # Kept, however the deployment keeps sandboxes: there is no run yet whose end could be its end.
        policy = self.manager.policy.model_copy(update={"keep": "thread"})
        acquired = await self.manager.acquire(owner, sandbox_id, policy)
        told = False
        try:
            await work(box(acquired.handle))
            update = {**(values or {}), "sandbox_id": acquired.sandbox_id}
            await self.threads().update_state(thread_id, update, as_node=self.last_node)
            told = True
        except httpx.HTTPStatusError as exc:
            raise HTTPException(exc.response.status_code, "a run of this thread has begun meanwhile") from exc
        finally:
            ours = acquired.how in {"created", "replaced"}
            ending = policy if told or not ours else policy.model_copy(update={"keep": "run"})
            await self.manager.release(owner, acquired.sandbox_id, ending)
