"""What happens to a run from outside, and what becomes of its sandbox then."""

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from langgraph.callbacks import GraphCallbackHandler, GraphInterruptEvent

from agent.sandbox.manager import SandboxManager
from agent.sandbox.owners import is_retried


class RunWatch(GraphCallbackHandler):
    """Bound to an exported graph: `graph.with_config(callbacks=[RunWatch(manager)])`.

    - A human is asked: the sandbox is paused at once. LangGraph awaits this once per interrupt, after
      parallel calls have ended, wherever the interrupt was raised. A tool wrapper would not do: siblings may
      still run, and another middleware's interrupt passes it.
    - The run fails: the sandbox is paused too; the thread's next turn may want what is in it.
    - The run has no thread: nobody can go on with it, and what it leaves is ended, however it ends.
    - The run is rolled back: state forgets the run, and with it the id; what the run made is ended.
    - The run is cancelled: what it made is ended where its id never reached state. All else stays as it is,
      since the next run may have begun in it already. So it does when a server shuts down, which runs the
      same run again later.

    Only the root of a run is told why it was cancelled: nodes and tools see a sentinel of LangGraph's.
    Without a run id, as in a process that gives none, the sandbox is left to its lease.
    """

    def __init__(self, manager: SandboxManager) -> None:
        super().__init__()
        self._manager = manager
        self._endings: set[asyncio.Task[None]] = set()
        self._roots: dict[UUID, UUID] = {}
        """Of each chain of a run that a server began again, the root: LangGraph's id of it is another."""

    async def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Note the chains of a run that was begun again: by those that ask for a sandbox it is known."""
        if parent_run_id in self._roots:
            self._roots[run_id] = self._roots[parent_run_id]
        elif parent_run_id is None and is_retried(metadata):
            self._roots[run_id] = run_id

    async def on_chain_end(
        self, outputs: dict[str, Any], *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any
    ) -> None:
        """Forget what was noted of a run that has ended."""
        if parent_run_id is None:
            run = self._server_id(run_id)
            self._forget(run_id)
            await self._manager.over(run)

    async def on_interrupt(self, event: GraphInterruptEvent) -> None:
        """Pause what the run is connected to; failing to never breaks the interrupt."""
        if event.run_id is not None:
            await self._manager.rest(self._server_id(event.run_id))

    async def on_chain_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any
    ) -> None:
        """Pause or end what the run is connected to, as the class says."""
        if parent_run_id is not None:
            return
        run = self._server_id(run_id)
        self._forget(run_id)
        if not isinstance(error, asyncio.CancelledError):
            await self._manager.rest(run)
            return
        # The server's own classes; their module is not one to import from.
        match type(error.args[0]).__name__ if error.args else "":
            case "UserRollback":
                self._begin(self._manager.undo(run))
            case "UserInterrupt":
                self._begin(self._manager.undo(run, unrecorded_only=True))

    def _server_id(self, run_id: UUID) -> str:
        """Return the server's id of a run, which the chains that asked for its sandboxes gave."""
        chains = {str(chain) for chain, root in self._roots.items() if root == run_id}
        known = self._manager.begun_again(chains) if chains else ""
        return known or str(run_id)

    def _forget(self, run_id: UUID) -> None:
        self._roots = {chain: root for chain, root in self._roots.items() if root != run_id}

    def _begin(self, ending: Coroutine[Any, Any, None]) -> None:
        # A task of its own: this one is being cancelled, and may be cancelled again while it waits.
        task = asyncio.create_task(ending)
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)
