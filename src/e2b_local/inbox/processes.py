"""Processes started through the SDK: their output, input, signals and ends."""

from __future__ import annotations

import asyncio
import base64
import collections
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from . import terminal
from .limits import OomScore, limit_child
from .paths import Paths
from .process import Process, Subscription, as_json
from .reaper import Reaper
from .wire import Channel, Message, OpError

_READ_BYTES = 64 * 1024
_SIGNALS = {
    "SIGNAL_SIGKILL": signal.SIGKILL,
    "SIGNAL_SIGTERM": signal.SIGTERM,
    9: signal.SIGKILL,
    15: signal.SIGTERM,
}
# Ends of finished processes that a late Connect may still ask for.
_REMEMBERED_ENDS = 256
# A process that waits for a disk may not end at once.
_KILL_S = 2.0


class Processes:
    """All processes the SDK started, by id."""

    def __init__(
        self,
        paths: Paths,
        reaper: Reaper,
        environment: Callable[[], Mapping[str, str]],
        cpu_s: int,
        score: OomScore,
    ) -> None:
        self._paths = paths
        self._reaper = reaper
        self._environment = environment
        self._cpu_s = cpu_s
        self._score = score
        self._running: dict[int, Process] = {}
        self._ended: collections.OrderedDict[int, Process] = collections.OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def stop_clocks(self) -> None:
        """Stop the time limits of all processes."""
        for process in self._running.values():
            process.stop_clock()

    def start_clocks(self) -> None:
        """Let the time limits of all processes run on."""
        for process in self._running.values():
            process.start_clock()

    async def start(self, request: Message, channel: Channel) -> Message:
        """Start a process and stream its events until its end or until the caller hangs up.

        The process outlives the stream, but not `timeout_ms`, when it is killed with all it started.
        """
        process = await self._spawn(request)
        return await self._stream(process, channel)

    async def connect(self, request: Message, channel: Channel) -> Message:
        """Stream the further events of a process; a finished one answers its end."""
        return await self._stream(self._select(request, ended=True), channel)

    async def listing(self, request: Message) -> Message:
        """List the running processes."""
        return {
            "processes": [
                {"config": process.config, "pid": process.pid} | ({"tag": process.tag} if process.tag else {})
                for process in self._running.values()
            ]
        }

    async def signal(self, request: Message) -> Message:
        """Send SIGKILL or SIGTERM to a process and its group; of SIGKILL see it end."""
        number = _SIGNALS.get(request.get("signal", ""))
        if number is None:
            raise OpError("unimplemented", f"invalid signal: {request.get('signal')}")
        process = self._select(request)
        process.kill(number)
        if number is signal.SIGKILL:
            # Whoever looks next shall not find it any more, not even as a zombie.
            await asyncio.wait({process.status}, timeout=_KILL_S)
        return {}

    async def input(self, request: Message) -> Message:
        """Write to the standard input or the terminal of a process."""
        process = self._select(request)
        given: Message = request.get("input") or {}
        if "pty" in given:
            if process.pty is None:
                raise OpError("failed_precondition", "tty not assigned to process")
            await terminal.write(process.pty, base64.b64decode(given["pty"]))
            return {}
        if process.stdin is None:
            raise OpError("failed_precondition", "stdin not enabled or closed")
        try:
            process.stdin.write(base64.b64decode(given.get("stdin", "")))
            await process.stdin.drain()
        except (ConnectionError, OSError) as exc:
            raise OpError("internal", f"error writing to stdin: {exc}") from exc
        return {}

    async def close_stdin(self, request: Message) -> Message:
        """Close the standard input of a process, so that it reads its end."""
        process = self._select(request)
        if process.pty is not None:
            raise OpError(
                "failed_precondition", "cannot close stdin of a terminal: send Ctrl+D (0x04) instead"
            )
        if process.stdin is None:
            raise OpError("failed_precondition", "stdin not enabled or closed")
        process.stdin.close()
        process.stdin = None
        return {}

    async def update(self, request: Message) -> Message:
        """Resize the terminal of a process."""
        process = self._select(request)
        size = (request.get("pty") or {}).get("size")
        if size:
            if process.pty is None:
                raise OpError("failed_precondition", "tty not assigned to process")
            terminal.resize(process.pty, int(size.get("cols", 0)), int(size.get("rows", 0)))
        return {}

    async def _spawn(self, request: Message) -> Process:
        given: Message = request.get("process") or {}
        cwd = self._paths.resolve(given.get("cwd") or "")
        if not os.path.isdir(cwd):
            raise OpError("invalid_argument", f"cwd '{given.get('cwd')}' does not exist")
        environment = {**self._environment(), **(given.get("envs") or {})}
        command = [str(given.get("cmd", "")), *map(str, given.get("args") or [])]
        if os.getpid() != 1 and command[1:2] == ["-l"]:
            # Without isolation a login shell would read the host's /etc/profile, which on Debian resets PATH
            # and so loses the template's Python.
            del command[1]
        size = (request.get("pty") or {}).get("size") if request.get("pty") is not None else None
        master: int | None = None
        try:
            with self._score:
                if request.get("pty") is not None:
                    popen, master = terminal.spawn(command, cwd, environment, size or {})
                else:
                    popen = subprocess.Popen(
                        command,
                        cwd=cwd,
                        env=environment,
                        # Absent means true: clients older than the field expect an open standard input.
                        stdin=subprocess.PIPE if request.get("stdin", True) else subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        bufsize=0,
                        start_new_session=True,
                    )
        except BlockingIOError as exc:
            raise OpError("resource_exhausted", "the sandbox may not have more processes") from exc
        except (OSError, ValueError) as exc:
            raise OpError("invalid_argument", f"error starting process: {exc}") from exc
        limit_child(popen.pid, self._cpu_s)
        status = self._reaper.watch(popen.pid)
        process = Process(popen, status, given, request.get("tag"), master)
        self._running[process.pid] = process
        if popen.stdin is not None:
            process.stdin = await _writer(popen.stdin)
        task = asyncio.create_task(self._attend(process, popen, request.get("timeout_ms")))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return process

    async def _attend(
        self, process: Process, popen: subprocess.Popen[bytes], timeout_ms: float | None
    ) -> None:
        # Subscribers of the starting request attach before this task first runs, so no output is missed.
        readers = [
            self._pump(process, kind, stream)
            for kind, stream in (("stdout", popen.stdout), ("stderr", popen.stderr))
            if stream is not None
        ]
        if process.pty is not None:
            readers.append(self._pump_terminal(process, process.pty))
        # The end is reported after the last output: a background child that keeps the pipe open keeps the
        # stream open too, as E2B's own daemon does.
        if timeout_ms:
            process.left_s = timeout_ms / 1000
            process.start_clock()
        await asyncio.gather(*readers)
        code = await process.status
        process.stop_clock()
        self._running.pop(process.pid, None)
        self._ended[process.pid] = process
        while len(self._ended) > _REMEMBERED_ENDS:
            self._ended.popitem(last=False)
        await process.finish(code)

    async def _pump(self, process: Process, kind: str, stream: Any) -> None:
        reader = asyncio.StreamReader(limit=_READ_BYTES)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), stream
        )
        try:
            while piece := await reader.read(_READ_BYTES):
                await process.publish(_data(kind, piece))
        finally:
            transport.close()

    async def _pump_terminal(self, process: Process, master: int) -> None:
        async for piece in terminal.read(master):
            await process.publish(_data("pty", piece))

    async def _stream(self, process: Process, channel: Channel) -> Message:
        subscription = Subscription()
        process.subscriptions.add(subscription)
        try:
            await channel.send_data(as_json({"start": {"pid": process.pid}}))
            if process.end is not None:
                await channel.send_data(process.end)
                return {}
            while (event := await subscription.get()) is not None:
                await channel.send_data(event)
            if process.expired:
                raise OpError("deadline_exceeded", "the command ran into its timeout and was killed")
        finally:
            process.subscriptions.discard(subscription)
            subscription.close()
        return {}

    def _select(self, request: Message, *, ended: bool = False) -> Process:
        selector: Message = request.get("process") or {}
        known: list[Process] = [*self._running.values(), *(self._ended.values() if ended else ())]
        if "pid" in selector:
            wanted = int(selector["pid"])
            for process in known:
                if process.pid == wanted:
                    return process
            raise OpError("not_found", f"process with pid {wanted} not found")
        for process in known:
            if process.tag is not None and process.tag == selector.get("tag"):
                return process
        raise OpError("not_found", f"process with tag {selector.get('tag')} not found")


def _data(kind: str, piece: bytes) -> bytes:
    return as_json({"data": {kind: base64.b64encode(piece).decode()}})


async def _writer(pipe: Any) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)
