"""One real `langgraph dev` for tests: started, restarted with its state, and always stopped."""

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from agent.cli.servers import LangGraphDev


class DevServer:
    """An async face on `agent.cli.servers.LangGraphDev`.

    Args:
        config: the langgraph.json to serve (its `env` is left out).
        folder: existing folder for the server's state, log and configuration; keeps them over restarts.
        env: variables on top of the test process's own.
        arguments: more arguments for `langgraph dev`.
    """

    def __init__(
        self,
        config: Path,
        folder: Path,
        *,
        env: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        more = ["--no-browser", "--no-reload", *arguments]
        self._process = LangGraphDev(config, folder, env=env or {}, arguments=more)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """The server's address; the same after a restart."""
        return self._process.url

    @property
    def log(self) -> str:
        """Everything the server has printed, restarts included."""
        return self._process.output()

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._process.pid

    async def start(self, *, deadline_s: float = 60.0) -> str:
        """Start the server, wait until it answers, and return its address."""
        try:
            self._process.start()  # here: the server ends with the thread that started it
            return await asyncio.to_thread(self._process.wait_until_ready, deadline_s)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop the server; SIGTERM lets it save its state."""
        await asyncio.to_thread(self._process.stop)

    async def kill(self) -> None:
        """Kill the server (SIGKILL) once it has written down the runs and threads that there are now.

        It writes them every ten seconds; its checkpoints (langgraph-runtime-inmem 0.36.7) when it is stopped.
        """
        saved, began = self.folder / ".langgraph_api" / ".langgraph_ops.pckl", time.time()
        async with asyncio.timeout(30):
            while not saved.exists() or saved.stat().st_mtime < began:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        pid = self.pid
        assert pid is not None, "the server has ended by itself"
        os.kill(pid, signal.SIGKILL)

    async def restart(self) -> str:
        """Stop the server and start it again on the same port with the same state."""
        await self.stop()
        return await self.start()

    def assert_no_blocking_errors(self) -> None:
        """Fail when code blocked the server's event loop."""
        lines = [line for line in self.log.splitlines() if "BlockingError" in line]
        assert not lines, "\n".join(lines)
