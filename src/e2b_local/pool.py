"""Boxes made in advance, so that creating a sandbox does not wait for a kernel to start."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from e2b_local.agent_client import BoxGoneError
from e2b_local.box import Box, BoxStartError, Launcher
from e2b_local.inbox.wire import OpError

_log = logging.getLogger(__name__)


class Pool:
    """Keeps up to `size` boxes with a warm Python kernel; 0 makes every box when it is asked for."""

    def __init__(self, launcher: Launcher, size: int, prepare: Callable[[], Awaitable[None]]) -> None:
        self._launcher = launcher
        self._prepare = prepare
        self._size = size
        self._ready: list[Box] = []
        self._filling: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def ready(self) -> int:
        """How many warm boxes wait."""
        return len(self._ready)

    def start(self) -> None:
        """Begin to fill in the background."""
        if self._size and not self._closed and self._filling is None and len(self._ready) < self._size:
            self._filling = asyncio.create_task(self._fill())

    async def take(self) -> Box:
        """Return a warm box if there is one, else a new one whose kernel starts with its first use.

        Raises:
            BoxStartError: no box could be started.
        """
        while self._ready:
            box = self._ready.pop(0)
            self.start()
            if not box.ended.is_set():
                return box
        self.start()
        return await self._launcher.launch()

    async def close(self) -> None:
        """End all boxes still in the pool."""
        self._closed = True
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)
        await asyncio.gather(*(box.kill() for box in self._ready))
        self._ready.clear()

    async def _fill(self) -> None:
        # One at a time: on a small machine two kernels that start together take as long as one after the
        # other, and the sandboxes in use would feel both.
        try:
            await self._prepare()
            while len(self._ready) < self._size:
                box = await self._launcher.launch()
                try:
                    await box.agent.call("warm")
                except BaseException:
                    await box.kill()
                    raise
                self._ready.append(box)
        except (BoxStartError, BoxGoneError, OpError) as exc:
            _log.warning("no warm sandbox: %s", exc)
        finally:
            self._filling = None
            with contextlib.suppress(RuntimeError):
                self._ready = [box for box in self._ready if not box.ended.is_set()]
