"""Pausing a run's sandbox at once when a human is asked, and ending it when the run is rolled back."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langgraph.callbacks import GraphCallbackHandler, GraphInterruptEvent

from agent.sandbox.manager import SandboxManager

logger = logging.getLogger(__name__)


class PauseWhenAsked(GraphCallbackHandler):
    """Bound to an exported graph: `graph.with_config(callbacks=[PauseWhenAsked(manager)])`.

    LangGraph awaits it once per interrupt, after parallel calls have ended, wherever the interrupt was
    raised. A tool wrapper would not do: siblings may still run, and another middleware's interrupt passes it.
    Without a run id, as in a process that gives none, the sandbox is left to its lease.
    """

    def __init__(self, manager: SandboxManager) -> None:
        super().__init__()
        self._manager = manager

    async def on_interrupt(self, event: GraphInterruptEvent) -> None:
        """Pause what the run is connected to; failing to never breaks the interrupt."""
        if event.run_id is not None:
            await self._manager.rest(str(event.run_id))


class Undoing:
    """Ends what a run has made when the server rolls it back.

    State forgets the run, and with it the id; no later hook could find the sandbox. Only sandboxes which this
    very run created are ended: the next run may have begun already, in one of its own.
    """

    def __init__(self, manager: SandboxManager) -> None:
        self._manager = manager
        self._endings: set[asyncio.Task[None]] = set()

    @contextmanager
    def of(self, runtime: Any) -> Iterator[None]:
        """Watch over a stretch of the run that `runtime` belongs to."""
        try:
            yield
        except asyncio.CancelledError as exc:
            run_id = runtime.execution_info.run_id
            if run_id and exc.args and type(exc.args[0]).__name__ == "UserRollback":
                # A task of its own: this one is being cancelled, and may be cancelled again while it waits.
                ending = asyncio.create_task(self._manager.undo(run_id))
                self._endings.add(ending)
                ending.add_done_callback(self._endings.discard)
            raise
