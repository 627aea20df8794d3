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
    """Ends what a run has made when the server takes it back.

    A rollback makes state forget the run, and with it the id; a cancel does so while the id has not reached
    state. No later hook could find the sandbox. Only sandboxes which this very run created are ended: the
    next run may have begun already, in one of its own. A server that shuts down ends none: it runs the
    same run again.
    """

    def __init__(self, manager: SandboxManager) -> None:
        self._manager = manager
        self._endings: set[asyncio.Task[None]] = set()

    @contextmanager
    def of(self, runtime: Any, *, recorded: bool = True) -> Iterator[None]:
        """Watch over a stretch of the run that `runtime` belongs to.

        Args:
            runtime: a LangGraph `Runtime` or a tool's `ToolRuntime`.
            recorded: state holds the id of what the run made, or will without this stretch's help.
        """
        try:
            yield
        except asyncio.CancelledError as exc:
            run_id = runtime.execution_info.run_id
            # The server's own classes; their module is not one to import from.
            reason = type(exc.args[0]).__name__ if exc.args else ""
            if run_id and (reason == "UserRollback" or (reason == "UserInterrupt" and not recorded)):
                # A task of its own: this one is being cancelled, and may be cancelled again while it waits.
                ending = asyncio.create_task(self._manager.undo(run_id))
                self._endings.add(ending)
                ending.add_done_callback(self._endings.discard)
            raise
