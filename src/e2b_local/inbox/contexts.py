"""Code contexts: a kernel each, with a language and a working folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .languages import defaults, kernel_kind, named, reset_variables, set_variables
from .limits import limit_kernel
from .paths import Paths
from .wire import Channel, Message, OpError

if TYPE_CHECKING:
    from .kernel import Kernel

# How long a cell may take to react to an interruption before the next one is sent behind it.
_INTERRUPT_GRACE_S = 5.0


class Context:
    """One kernel, which may start with the first cell, and the queue before it."""

    def __init__(self, identifier: str, language: str, cwd: str) -> None:
        self.id = identifier
        self.language = language
        self.cwd = cwd
        self.kernel: Kernel | None = None
        self.lock = asyncio.Lock()
        # Variables to set before the next cell: what its sandbox was created with, learnt after its start.
        self.pending: dict[str, str] = {}


class Contexts:
    """The contexts of this sandbox; the default one of a language starts with its first use."""

    def __init__(
        self, paths: Paths, run_dir: str, environment: Callable[[], Mapping[str, str]], cpu_s: int
    ) -> None:
        self._paths = paths
        self._run_dir = run_dir
        self._environment = environment
        self._cpu_s = cpu_s
        self._contexts: dict[str, Context] = {}
        self._defaults: dict[str, asyncio.Task[Context]] = {}
        self._given: dict[str, str] = {}

    async def warm(self, request: Message) -> Message:
        """Start the default context, so that the first cell finds a kernel."""
        await self._ready(await self._default("python"))
        return {}

    def update_environment(self, variables: Mapping[str, str]) -> None:
        """Have running kernels take over variables before their next cell."""
        self._given.update(variables)
        for context in self._contexts.values():
            context.pending.update(variables)

    async def listing(self, request: Message) -> Message:
        """List all contexts; there always are default ones."""
        # As if they had been there from the start, which is how E2B has it.
        first = [await self._default(language, later=True) for language in defaults()]
        rest = [context for context in self._contexts.values() if context not in first]
        return {"contexts": [_shown(context, self._paths) for context in [*first, *rest]]}

    async def find(self, request: Message) -> Message:
        """Describe one context."""
        return _shown(self._get(request), self._paths)

    async def create(self, request: Message) -> Message:
        """Make a context in a language (default Python) and folder (default home)."""
        return _shown(
            await self._create(named(request.get("language")), request.get("cwd") or ""), self._paths
        )

    async def delete(self, request: Message) -> Message:
        """End a context and its kernel; a cell in flight ends with an error."""
        context = self._get(request)
        del self._contexts[context.id]
        for language, task in list(self._defaults.items()):
            if task.done() and not task.cancelled() and task.exception() is None and task.result() is context:
                del self._defaults[language]
        if context.kernel is not None:
            context.kernel.fail(
                "UnexpectedEndOfExecution",
                "Connection to the execution was closed before the execution was finished",
            )
            await context.kernel.stop()
        return {}

    async def restart(self, request: Message) -> Message:
        """Give a context a fresh kernel under the same id; a cell in flight ends with an error."""
        context = self._get(request)
        await self._restart(context)
        return {}

    async def execute(self, request: Message, channel: Channel) -> Message:
        """Run a cell and stream its lines; a caller that hangs up interrupts it."""
        context = await self._wanted(request)
        from .results import error

        await _acquire(context.lock, channel)
        try:
            kernel = await self._ready(context)
            variables: dict[str, str] = request.get("env_vars") or {}
            if wanted := {**context.pending, **variables}:
                await kernel.execute(set_variables(context.language, wanted), silent=True)
                context.pending = {}
            identifier = await kernel.execute(str(request.get("code", "")))
            try:
                await self._lines(kernel, identifier, channel)
            except BaseException:
                # Hung up: the next cell must neither wait behind this one nor be caught by its interruption.
                await asyncio.shield(self._interrupt(kernel, identifier, context.language))
                raise
            finally:
                if variables and kernel.alive:
                    reset = reset_variables(context.language, variables, self._environment())
                    await kernel.execute(reset, silent=True)
            if not kernel.alive and context.id in self._contexts:
                await channel.send(error("ContextRestarting", "Context was restarted"))
                await self._restart(context)
        finally:
            context.lock.release()
        return {}

    async def _interrupt(self, kernel: Kernel, identifier: str, language: str) -> None:
        await kernel.interrupt()
        try:
            async with asyncio.timeout(_INTERRUPT_GRACE_S):
                while kernel.alive and await kernel.next_line(identifier) is not None:
                    pass
        except TimeoutError:
            if language != "python":
                # Those stop a loop, but not all of them a program that waits; the next cell gets a fresh one.
                await kernel.stop()
        kernel.forget(identifier)

    async def _lines(self, kernel: Kernel, identifier: str, channel: Channel) -> None:
        hangup = asyncio.ensure_future(
            channel.reader.read(1)
        )  # the server sends nothing more: this is its end
        line = asyncio.ensure_future(kernel.next_line(identifier))
        try:
            while True:
                await asyncio.wait({hangup, line}, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
                if hangup.done():
                    raise ConnectionAbortedError
                if not line.done():
                    if not kernel.alive:
                        return
                    continue
                found = line.result()
                if found is None:
                    return
                await channel.send(found)
                line = asyncio.ensure_future(kernel.next_line(identifier))
        finally:
            hangup.cancel()
            line.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await hangup

    async def _wanted(self, request: Message) -> Context:
        if request.get("context_id") and request.get("language"):
            raise OpError("invalid_argument", "Only one of context_id or language can be provided")
        if request.get("context_id"):
            return self._get(request)
        return await self._default(named(request.get("language")))

    def _get(self, request: Message) -> Context:
        identifier = str(request.get("context_id"))
        context = self._contexts.get(identifier)
        if context is None:
            raise OpError("not_found", f"Context {identifier} not found")
        return context

    async def _default(self, language: str, *, later: bool = False) -> Context:
        task = self._defaults.get(language)
        if task is None:
            # A task of its own: a caller that hangs up while the kernel starts must not take it along.
            task = asyncio.create_task(self._create(language, "", later=later))
            self._defaults[language] = task
        try:
            return await asyncio.shield(task)
        except OpError:
            self._defaults.pop(language, None)
            raise

    async def _create(self, language: str, cwd: str, *, later: bool = False) -> Context:
        folder = self._paths.resolve(cwd)
        if not os.path.isdir(folder):
            raise OpError("internal", "Failed to set working directory")
        context = Context(str(uuid.uuid4()), language, folder)
        if not later:
            await self._restart(context)
        self._contexts[context.id] = context
        return context

    async def _ready(self, context: Context) -> Kernel:
        kernel = context.kernel
        return kernel if kernel is not None and kernel.alive else await self._restart(context)

    async def _restart(self, context: Context) -> Kernel:
        if context.kernel is not None:
            context.kernel.fail("ContextRestarting", "Context was restarted")
            await context.kernel.stop()
        kernel = context.kernel = await self._start(context.language, context.cwd)
        # Java's variables are properties, with which a kernel does not start.
        context.pending = dict(self._given) if context.language == "java" else {}
        return kernel

    async def _start(self, language: str, folder: str) -> Kernel:
        if "jupyter_client" not in sys.modules:
            await asyncio.to_thread(_import_kernels)
        from .kernel import Kernel, KernelDiedError, kernel_environment

        environment = kernel_environment(self._environment(), self._run_dir)
        kind = kernel_kind(language)
        try:
            kernel = await Kernel.start(kind, folder, environment, self._run_dir)
        except KernelDiedError as exc:
            raise OpError("internal", f"Failed to create context: {exc}") from exc
        if kernel.pid is not None:
            limit_kernel(kernel.pid, self._cpu_s)
        return kernel


async def _acquire(lock: asyncio.Lock, channel: Channel) -> None:
    """Wait for the lock; raises ConnectionAbortedError, without it, when the caller hangs up first."""
    turn = asyncio.ensure_future(lock.acquire())
    hangup = asyncio.ensure_future(channel.reader.read(1))
    try:
        await asyncio.wait({turn, hangup}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        hangup.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await hangup
        if not turn.done():
            turn.cancel()
    if hangup.cancelled():
        return
    if turn.done() and not turn.cancelled():
        lock.release()
    raise ConnectionAbortedError


def _shown(context: Context, paths: Paths) -> Message:
    return {"id": context.id, "language": context.language, "cwd": paths.show(context.cwd)}


def _import_kernels() -> None:
    # This agent starts without site-packages (-S); the kernel client lives there.
    import site

    site.main()
    from . import kernel  # noqa: F401
