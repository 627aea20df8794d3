"""Collecting children: this agent is process 1 of its sandbox, so every orphan becomes its child."""

from __future__ import annotations

import asyncio
import os
import signal


class Reaper:
    """Waits for every child and hands the status of those it was asked about to their owners."""

    def __init__(self) -> None:
        self._owned: dict[int, asyncio.Future[int]] = {}

    def install(self) -> None:
        """Start reaping; call once, in the running loop."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)

    def watch(self, pid: int) -> asyncio.Future[int]:
        """Return a future of the child's wait status; call before giving control back to the loop."""
        future = asyncio.get_running_loop().create_future()
        self._owned[pid] = future
        return future

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            future = self._owned.pop(pid, None)
            if future is not None and not future.done():
                future.set_result(status)
