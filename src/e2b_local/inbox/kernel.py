"""One Jupyter kernel: starting it, running code on it, interrupting it.

Kernels are reached over ipc sockets in this sandbox's private run folder, or on its own loopback where they
know nothing else. Either way only this agent connects to them, never the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from .languages import KernelKind
from .results import error, line_of

_START_TIMEOUT_S = 120.0
_PROBE_INTERVAL_S = 0.1
# How long a cell's value may follow its end, where a kernel does not keep the order.
_LATE_VALUE_S = 0.2
_DELIMITER = b"<IDS|MSG>"
_numbers = itertools.count(1)


class KernelDiedError(Exception):
    """The kernel ended while it was needed."""


class Kernel:
    """A running kernel; one execution at a time is the caller's business."""

    def __init__(self, manager: AsyncKernelManager, *, orderly: bool) -> None:
        self._manager = manager
        self._orderly = orderly
        # The blocking client sends; what arrives is read here whenever its sockets have something. Reading
        # through the asynchronous client costs a cell several milliseconds.
        self._client = BlockingKernelClient()
        self._client.load_connection_info(manager.get_connection_info())
        self._client.start_channels(stdin=False, hb=False)
        self._output: zmq.Socket[bytes] = self._client.iopub_channel.socket
        self._replies: zmq.Socket[bytes] = self._client.shell_channel.socket
        self._executions: dict[str, asyncio.Queue[dict[str, Any] | None]] = {}
        self._valued: set[str] = set()
        self._heard = False
        self._unanswered = 0
        self._ready = asyncio.Event()
        self._stopped = False
        loop = asyncio.get_running_loop()
        for each in (self._output, self._replies):
            loop.add_reader(each.fileno(), self._read)

    @classmethod
    async def start(cls, kind: KernelKind, cwd: str, environment: Mapping[str, str], run_dir: str) -> Kernel:
        """Start a kernel and wait until it answers; its connection lies in `run_dir`.

        Raises:
            KernelDiedError: it ended or did not answer within two minutes; nothing of it is left.
        """
        number = next(_numbers)
        transport: Literal["tcp", "ipc"] = "tcp" if kind.tcp else "ipc"
        manager = AsyncKernelManager(
            transport=transport,
            ip="127.0.0.1" if kind.tcp else f"{run_dir}/kernel-{number}",
            connection_file=f"{run_dir}/kernel-{number}.json",
        )
        # The command is given, not looked up: kernel specifications written by a program must not matter.
        # Setting the spec manager forgets the spec, hence this order.
        manager.kernel_spec_manager = KernelSpecManager(kernel_dirs=[])
        manager._kernel_spec = kind.specification
        await manager.start_kernel(cwd=cwd, env=dict(environment))
        kernel = cls(manager, orderly=kind.orderly)
        try:
            await kernel._answer()
        except BaseException:
            await kernel.stop()
            raise
        return kernel

    @property
    def pid(self) -> int | None:
        """The id of the kernel's process, None once it is gone."""
        return getattr(getattr(self._manager.provisioner, "process", None), "pid", None)

    @property
    def alive(self) -> bool:
        """Whether the kernel's process still exists."""
        process = getattr(self._manager.provisioner, "process", None)
        return process is not None and process.poll() is None

    async def execute(self, code: str, *, silent: bool = False) -> str:
        """Send code and return the id under which `lines` gives what it produces."""
        identifier: str = self._client.execute(
            code, silent=silent, store_history=not silent, allow_stdin=False, stop_on_error=False
        )
        if not silent:
            self._executions[identifier] = asyncio.Queue()
        self._look()
        return identifier

    async def next_line(self, identifier: str) -> dict[str, Any] | None:
        """Return the next line of an execution, or None after its last."""
        queue = self._executions.get(identifier)
        if queue is None:
            return None
        line = await queue.get()
        if line is None:
            self.forget(identifier)
        return line

    def forget(self, identifier: str) -> None:
        """Drop what an execution still produces."""
        self._executions.pop(identifier, None)
        self._valued.discard(identifier)

    async def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the running cell; a kernel that is gone is left alone."""
        with contextlib.suppress(Exception):
            await self._manager.interrupt_kernel()

    def fail(self, name: str, value: str) -> None:
        """End every execution with an error."""
        for queue in self._executions.values():
            queue.put_nowait(error(name, value))
            queue.put_nowait(None)

    async def stop(self) -> None:
        """Kill the kernel and all in its process group; calling it again does nothing."""
        if self._stopped:
            return
        loop = asyncio.get_running_loop()
        for each in (self._output, self._replies):
            loop.remove_reader(each.fileno())
        self._stopped = True
        self._client.stop_channels()
        with contextlib.suppress(Exception):
            await self._manager.shutdown_kernel(now=True)

    async def _answer(self) -> None:
        # Both ends must be up before the first cell: the reply says that the kernel reads, a message on the
        # output channel that our subscription has arrived there. Without it the first output could be lost.
        # Every question must be answered: Deno's kernel mixes up the ends of what it does at the same time.
        deadline = asyncio.get_running_loop().time() + _START_TIMEOUT_S
        while not self._ready.is_set():
            if not self.alive:
                raise KernelDiedError("the kernel ended while it started")
            if asyncio.get_running_loop().time() > deadline:
                raise KernelDiedError("the kernel did not answer in time")
            if not self._heard:
                self._client.kernel_info()
                self._unanswered += 1
            self._look()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ready.wait(), _PROBE_INTERVAL_S)

    def _look(self) -> None:
        # Sending may swallow the change that the descriptor would have told of.
        asyncio.get_running_loop().call_soon(self._read)

    def _read(self) -> None:
        # The descriptor of a zmq socket tells only that something has changed: all there is must be taken.
        if self._stopped:
            return
        for message in _received(self._output):
            self._take_output(message)
        for message in _received(self._replies):
            if message["msg_type"] == "kernel_info_reply":
                self._unanswered -= 1
            # An aborted request (queued behind a failing one) produces no output at all.
            if message["content"].get("status") in ("aborted", "abort"):
                self._finish(message, error("ExecutionAborted", "Execution was aborted"))
        if self._heard and self._unanswered == 0:
            self._ready.set()

    def _take_output(self, message: dict[str, Any]) -> None:
        kind = message["msg_type"]
        if kind == "status":
            if message["parent_header"].get("msg_type") == "kernel_info_request":
                self._heard = True
            if message["content"]["execution_state"] == "idle":
                self._finish(message)
            return
        identifier = message["parent_header"].get("msg_id", "")
        queue = self._executions.get(identifier)
        line = line_of(message) if queue is not None else None
        if queue is not None and line is not None:
            queue.put_nowait(line)
            if kind in ("execute_result", "error"):
                self._valued.add(identifier)

    def _finish(self, message: dict[str, Any], last: dict[str, Any] | None = None) -> None:
        identifier = message["parent_header"].get("msg_id", "")
        queue = self._executions.get(identifier)
        if queue is None:
            return
        if last is not None:
            queue.put_nowait(last)
        if self._orderly or last is not None or identifier in self._valued:
            queue.put_nowait(None)
        else:
            asyncio.get_running_loop().call_later(_LATE_VALUE_S, queue.put_nowait, None)


def _received(socket: zmq.Socket[bytes]) -> Iterator[dict[str, Any]]:
    while True:
        try:
            frames = socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return
        # Routing ids, a delimiter, a signature, then header, parent header, metadata, content. The signature
        # is not checked: whoever could reach this socket could run code as this user anyway.
        start = frames.index(_DELIMITER) + 2
        # A text that holds half a character is sent as bytes that are no UTF-8.
        header, parent, _metadata, content = (
            json.loads(frame.decode("utf-8", "replace")) for frame in frames[start : start + 4]
        )
        yield {
            "header": header,
            "msg_type": header["msg_type"],
            "parent_header": parent,
            "content": content,
        }


def kernel_environment(base: Mapping[str, str], run_dir: str) -> dict[str, str]:
    """Return the environment of a kernel: that of a command, and where Jupyter keeps its own files."""
    return {
        **base,
        # IPython silently drops its startup and formatters when this folder cannot be written.
        "IPYTHONDIR": os.path.join(run_dir, "ipython"),
        "JUPYTER_RUNTIME_DIR": os.path.join(run_dir, "jupyter"),
        "JUPYTER_CONFIG_DIR": os.path.join(run_dir, "jupyter"),
        "JUPYTER_DATA_DIR": os.path.join(run_dir, "jupyter"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
