"""One Jupyter kernel: starting it, running code on it, interrupting it.

Kernels are reached over ipc sockets in this sandbox's private run folder: no network is needed, and the
server never touches a socket that a program of the sandbox could have put there.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Mapping
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from .results import error, line_of

_START_TIMEOUT_S = 120.0
_PROBE_INTERVAL_S = 0.2
_numbers = itertools.count(1)


class KernelDiedError(Exception):
    """The kernel ended while it was needed."""


class Kernel:
    """A running kernel; one execution at a time is the caller's business."""

    def __init__(self, manager: AsyncKernelManager) -> None:
        self._manager = manager
        self._client = manager.client()
        self._client.start_channels(stdin=False, hb=False)
        self._executions: dict[str, asyncio.Queue[dict[str, Any] | None]] = {}
        self._ready = asyncio.Event()
        self._readers = [asyncio.create_task(self._read_output()), asyncio.create_task(self._read_replies())]

    @classmethod
    async def start(cls, argv: list[str], cwd: str, environment: Mapping[str, str], run_dir: str) -> Kernel:
        """Start a kernel and wait until it answers.

        Raises:
            KernelDiedError: it ended or did not answer within two minutes; nothing of it is left.
        """
        number = next(_numbers)
        manager = AsyncKernelManager(
            transport="ipc",
            ip=f"{run_dir}/kernel-{number}",
            connection_file=f"{run_dir}/kernel-{number}.json",
        )
        # The command is given, not looked up: kernel specifications written by a program must not matter.
        # Setting the spec manager forgets the spec, hence this order.
        manager.kernel_spec_manager = KernelSpecManager(kernel_dirs=[])
        manager._kernel_spec = KernelSpec(argv=argv, display_name="", language="")
        await manager.start_kernel(cwd=cwd, env=dict(environment))
        kernel = cls(manager)
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
        """Kill the kernel and all in its process group."""
        for reader in self._readers:
            reader.cancel()
        self._client.stop_channels()
        with contextlib.suppress(Exception):
            await self._manager.shutdown_kernel(now=True)

    async def _answer(self) -> None:
        # Both ends must be up before the first cell: the reply says that the kernel reads, a message on the
        # output channel that our subscription has arrived there. Without it the first output could be lost.
        deadline = asyncio.get_running_loop().time() + _START_TIMEOUT_S
        while not self._ready.is_set():
            if not self.alive:
                raise KernelDiedError("the kernel ended while it started")
            if asyncio.get_running_loop().time() > deadline:
                raise KernelDiedError("the kernel did not answer in time")
            self._client.kernel_info()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ready.wait(), _PROBE_INTERVAL_S)

    async def _read_output(self) -> None:
        while True:
            message = await self._client.get_iopub_msg()
            kind = message["msg_type"]
            if kind == "status" and message["parent_header"].get("msg_type") == "kernel_info_request":
                self._ready.set()
            queue = self._executions.get(message["parent_header"].get("msg_id", ""))
            if queue is None:
                continue
            if kind == "status":
                if message["content"]["execution_state"] == "idle":
                    queue.put_nowait(None)
                continue
            line = line_of(message)
            if line is not None:
                queue.put_nowait(line)

    async def _read_replies(self) -> None:
        while True:
            message = await self._client.get_shell_msg()
            # An aborted request (queued behind a failing one) produces no output at all.
            if message["content"].get("status") in ("aborted", "abort"):
                queue = self._executions.get(message["parent_header"].get("msg_id", ""))
                if queue is not None:
                    queue.put_nowait(error("ExecutionAborted", "Execution was aborted"))
                    queue.put_nowait(None)


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
