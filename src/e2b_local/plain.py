"""Boxes without isolation: plain processes in a temporary home, for code that is known and trusted."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import pathlib
import shutil
import signal
import socket

from e2b_local.agent_client import AgentClient, BoxGoneError
from e2b_local.box import INBOX, Box, BoxStartError, await_ready
from e2b_local.egress import Egress
from e2b_local.errors import ApiError
from e2b_local.inbox.family import descendants
from e2b_local.pytest_plugins import not_offered
from e2b_local.state import note_process
from e2b_local.template import Template

_BOOT = (
    f"import sys; sys.path.insert(0, {str(INBOX.parent)!r}); import runpy; "
    f"sys.argv[0] = {INBOX.name!r}; runpy.run_module({INBOX.name!r}, run_name='__main__')"
)


class PlainBox:
    """The agent and what it started, all visible to the host."""

    def __init__(
        self, process: asyncio.subprocess.Process, folder: pathlib.Path, socket_path: pathlib.Path
    ) -> None:
        self.agent = AgentClient(socket_path)
        self.ended = asyncio.Event()
        self.most_bytes: int | None = None
        self._process = process
        self._folder = folder
        self._socket_path = socket_path
        self._watch = asyncio.create_task(self._wait())

    async def freeze(self) -> None:
        """Have the agent stop all it started."""
        with contextlib.suppress(BoxGoneError):
            await self.agent.call("freeze")

    async def thaw(self) -> None:
        """Have the agent continue all it started."""
        with contextlib.suppress(BoxGoneError):
            await self.agent.call("thaw")

    async def set_internet(self, egress: Egress | None) -> None:
        """Do nothing if all is allowed, as it is anyway; refuse to pretend otherwise."""
        if egress is None or egress.ruled:
            raise ApiError(400, "without isolation a sandbox always has the host's network")

    async def kill(self) -> None:
        """Kill what the agent started while it lives to adopt the orphans, then the agent."""
        if not self.ended.is_set():
            while below := descendants(self._process.pid):
                self._signal(below, signal.SIGKILL)
                await asyncio.sleep(0.005)
            self._signal({self._process.pid}, signal.SIGKILL)
        await self.ended.wait()

    def _signal(self, pids: set[int], number: signal.Signals) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    async def _wait(self) -> None:
        await self._process.wait()
        self.ended.set()
        self._socket_path.unlink(missing_ok=True)
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


class PlainLauncher:
    """Starts boxes that only have a folder of their own."""

    def __init__(self, template: Template, state_dir: pathlib.Path) -> None:
        self._template = template
        self._state_dir = state_dir
        self._numbers = itertools.count(1)
        names = [name for plugins in not_offered() for name in plugins.names]
        self._without_plugins = " ".join(f"-p no:{name}" for name in names)

    async def launch(self) -> Box:
        """Start a box and wait for its agent."""
        number = next(self._numbers)
        folder = self._state_dir / f"box-{number}"
        home, run, tmp = folder / "home", folder / "run", folder / "tmp"
        for path in (home, run, tmp):
            path.mkdir(parents=True)
        socket_path = self._state_dir / f"{number}.sock"
        listener = socket.socket(socket.AF_UNIX)
        process: asyncio.subprocess.Process | None = None
        try:
            listener.bind(str(socket_path))
            listener.listen(128)
            command = [str(self._template.python), "-I", "-S", "-c", _BOOT]
            command += ["--listen-fd", str(listener.fileno()), "--home", str(home), "--run", str(run)]
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                pass_fds=(listener.fileno(),),
                env={
                    "TMPDIR": str(tmp),
                    "MPLCONFIGDIR": str(self._template.font_cache),
                    # With isolation they are not there; here pytest can only be told.
                    "PYTEST_ADDOPTS": self._without_plugins,
                    **self._template.environment(str(home)),
                },
                cwd=home,
                start_new_session=True,
            )
            note_process(self._state_dir, process.pid)
            await await_ready(process)
        except BaseException as exc:
            socket_path.unlink(missing_ok=True)
            if process is not None and process.returncode is None:
                process.kill()
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(exc, OSError):
                raise BoxStartError(str(exc)) from exc
            raise
        finally:
            listener.close()
        return PlainBox(process, folder, socket_path)
