"""All sandboxes of a server: making, finding, timing and ending them."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import logging
import pathlib
from collections.abc import Coroutine, Mapping
from typing import Any

from e2b_local.agent_client import BoxGoneError
from e2b_local.box import Box
from e2b_local.config import Config
from e2b_local.egress import INGRESS, Egress
from e2b_local.errors import ApiError
from e2b_local.inbox.wire import OpError
from e2b_local.pool import Pool
from e2b_local.sandbox import Request, Sandbox, State, new_id, now
from e2b_local.snapshots import Snapshot, Snapshots
from e2b_local.starter import Starter

_log = logging.getLogger(__name__)
DEFAULT_TIMEOUT_S = 300
# E2B never wakes a sandbox by traffic for less than this, however short its own timeout was.
AUTO_RESUME_FLOOR_S = 300


class Registry:
    """Holds the sandboxes that are not dead, and the timers that end or pause them."""

    def __init__(self, config: Config, pool: Pool) -> None:
        self._config = config
        self._pool = pool
        self._starter = Starter(pool)
        self.snapshots = Snapshots(config.state_dir)
        self._sandboxes: dict[str, Sandbox] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def create(self, request: Request, archive: pathlib.Path | None = None) -> Sandbox:
        """Make a sandbox, with the files of a snapshot if given, and start its time.

        Raises:
            ApiError: 400 for a timeout out of range, 429 at the limit, 500 if no box starts; none is made.
        """
        check_timeout(request.timeout_s, self._config.max_timeout_s)
        self._check_room()
        sandbox_id = new_id()
        sandbox = Sandbox(sandbox_id, request, await self._starter.start(sandbox_id, request, archive))
        self._sandboxes[sandbox.id] = sandbox
        self._schedule(sandbox)
        self._spawn(self._bury(sandbox, sandbox.box))
        told = request.metadata or "no metadata"
        _log.info("created %s (timeout %d s, %s)", sandbox.id, request.timeout_s, told)
        return sandbox

    async def set_internet(self, sandbox_id: str, egress: Egress | None, told: Mapping[str, Any]) -> None:
        """Open or close a running sandbox's way to the internet, as the options `told` asked for."""
        sandbox = self.find(sandbox_id)
        async with sandbox.lock:
            self._check_running(sandbox)
            kept = {key: sandbox.request.network[key] for key in INGRESS if key in sandbox.request.network}
            closed = dataclasses.replace(sandbox.request, egress=None, internet=False, network=kept)
            try:
                await sandbox.box.set_internet(egress)
            except ApiError as exc:
                if exc.status >= 500:
                    # It failed on the way: what was open is shut.
                    sandbox.request = closed
                raise
            except BoxGoneError as exc:
                raise _unknown(sandbox_id) from exc
            sandbox.request = dataclasses.replace(
                closed, egress=egress, internet=egress is not None, network={**kept, **told}
            )

    async def snapshot(self, sandbox_id: str, name: str | None) -> Snapshot:
        """Keep a running sandbox's files; its processes stand still meanwhile and go on afterwards."""
        sandbox = self.find(sandbox_id)
        async with sandbox.lock:
            self._check_running(sandbox)
            try:
                return await sandbox.still(lambda: self.snapshots.take(sandbox, name))
            except OpError as exc:
                raise ApiError(500, f"Failed to snapshot sandbox: {exc.message}") from exc
            except BoxGoneError as exc:
                raise _unknown(sandbox_id) from exc

    async def fork(self, sandbox_id: str, count: int, timeout_s: int) -> list[Sandbox | ApiError]:
        """Make `count` sandboxes with the files of a running one; each item is one, or why it is not there.

        Their memory is not carried over: processes and kernels start anew.
        """
        check_timeout(timeout_s, self._config.max_timeout_s)
        snapshot = await self.snapshot(sandbox_id, None)
        request = dataclasses.replace(self.find(sandbox_id).request, timeout_s=timeout_s)
        try:
            made = await asyncio.gather(
                *(self.create(request, snapshot.archive) for _ in range(count)), return_exceptions=True
            )
        finally:
            self.snapshots.delete(snapshot.id)
        items: list[Sandbox | ApiError] = []
        for each in made:
            if not isinstance(each, Sandbox | ApiError):
                raise each
            items.append(each)
        return items

    @property
    def warm(self) -> int:
        """How many boxes of the pool are ready."""
        return self._pool.ready

    def find(self, sandbox_id: str) -> Sandbox:
        """Return a sandbox that is running or paused.

        Raises:
            ApiError: 404.
        """
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None:
            raise _unknown(sandbox_id)
        return sandbox

    def get(self, sandbox_id: str) -> Sandbox | None:
        """Return a sandbox that is running or paused, or None."""
        return self._sandboxes.get(sandbox_id)

    def all(self) -> list[Sandbox]:
        """Return every sandbox, the newest first."""
        return sorted(self._sandboxes.values(), key=lambda each: (each.started_at, each.id), reverse=True)

    async def connect(self, sandbox_id: str, timeout_s: int, *, memory: bool = True) -> tuple[Sandbox, bool]:
        """Make a sandbox run for at least `timeout_s` from now; return it and whether it was resumed.

        A running one is only ever given more time, a paused one exactly this much. Without `memory` a paused
        one comes back with its files only.
        """
        check_timeout(timeout_s, self._config.max_timeout_s)
        sandbox = self.find(sandbox_id)
        async with sandbox.lock:
            sandbox = self.find(sandbox_id)
            if sandbox.state is State.PAUSED:
                await self._resume(sandbox, timeout_s, memory=memory)
                return sandbox, True
            self.extend(sandbox, timeout_s)
            return sandbox, False

    def extend(self, sandbox: Sandbox, timeout_s: int) -> None:
        """Move the end of a running sandbox to `timeout_s` from now if that is later."""
        end = now() + datetime.timedelta(seconds=timeout_s)
        latest = sandbox.started_at + datetime.timedelta(seconds=self._config.max_timeout_s)
        sandbox.end_at = max(sandbox.end_at, min(end, latest))
        self._schedule(sandbox)

    async def set_timeout(self, sandbox_id: str, timeout_s: int) -> None:
        """Set the end of a running sandbox to `timeout_s` from now; 0 or less ends its time at once."""
        sandbox = self.find(sandbox_id)
        async with sandbox.lock:
            sandbox = self.find(sandbox_id)
            self._check_running(sandbox)
            if timeout_s > 0:
                check_timeout(timeout_s, self._config.max_timeout_s)
            sandbox.end_at = now() + datetime.timedelta(seconds=max(0, timeout_s))
            self._schedule(sandbox)

    async def pause(self, sandbox_id: str, *, memory: bool = True) -> None:
        """Pause a running sandbox, without `memory` keeping only its files; 409 if it is paused already."""
        sandbox = self.find(sandbox_id)
        async with sandbox.lock:
            sandbox = self.find(sandbox_id)
            if sandbox.state is State.PAUSED:
                raise ApiError(409, f'sandbox "{sandbox_id}" is already paused')
            await self._pause(sandbox, "asked", memory=memory)

    async def wake(self, sandbox: Sandbox) -> bool:
        """Resume a paused sandbox because traffic arrived, if it was created so; return whether it runs."""
        async with sandbox.lock:
            if sandbox.state is State.PAUSED and sandbox.request.lifecycle.auto_resume:
                floor = max(sandbox.request.timeout_s, AUTO_RESUME_FLOOR_S)
                await self._resume(sandbox, min(floor, self._config.max_timeout_s))
            return sandbox.state is State.RUNNING

    async def kill(self, sandbox_id: str, why: str = "asked") -> None:
        """End a sandbox, running or paused."""
        sandbox = self.find(sandbox_id)
        async with sandbox.lock:
            if not sandbox.dead:
                await self._end(sandbox, why)

    async def close(self) -> None:
        """End everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(self._pool.close(), *(self._end(each, "server stops") for each in self.all()))

    def _check_room(self) -> None:
        limit = self._config.max_running
        running = (
            sum(each.state is State.RUNNING for each in self._sandboxes.values()) + self._starter.starting
        )
        if limit is not None and running >= limit:
            raise ApiError(429, f"you have reached the maximum number of concurrent E2B sandboxes ({limit})")

    def _check_running(self, sandbox: Sandbox) -> None:
        if self._sandboxes.get(sandbox.id) is not sandbox or sandbox.state is not State.RUNNING:
            raise ApiError(404, f'sandbox "{sandbox.id}" is not running')

    async def _pause(self, sandbox: Sandbox, why: str, *, memory: bool) -> None:
        self._unschedule(sandbox)
        if memory:
            await sandbox.pause()
        else:
            try:
                await sandbox.pause_to(self._archive(sandbox))
            except OpError as exc:
                self._schedule(sandbox)
                raise ApiError(500, f"Failed to pause sandbox: {exc.message}") from exc
            except BoxGoneError as exc:
                raise _unknown(sandbox.id) from exc
        _log.info("paused %s (%s%s)", sandbox.id, why, "" if memory else ", files only")

    async def _resume(self, sandbox: Sandbox, timeout_s: int, *, memory: bool = True) -> None:
        self._check_room()
        if not memory and sandbox.archive is None:
            try:
                await sandbox.forget(self._archive(sandbox))
            except OpError as exc:
                raise ApiError(500, f"Failed to resume sandbox: {exc.message}") from exc
            except BoxGoneError as exc:
                raise _unknown(sandbox.id) from exc
        if sandbox.archive is None:
            await sandbox.resume(timeout_s)
        else:
            box = await self._starter.start(sandbox.id, sandbox.request, sandbox.archive)
            sandbox.boot(box, timeout_s)
            self._spawn(self._bury(sandbox, box))
        self._schedule(sandbox)
        _log.info("resumed %s (timeout %d s)", sandbox.id, timeout_s)

    def _archive(self, sandbox: Sandbox) -> pathlib.Path:
        return self._config.state_dir / f"paused-{sandbox.id}.tar"

    async def _end(self, sandbox: Sandbox, why: str) -> None:
        self._unschedule(sandbox)
        self._sandboxes.pop(sandbox.id, None)
        await sandbox.end()
        _log.info("killed %s (%s)", sandbox.id, why)

    async def _bury(self, sandbox: Sandbox, box: Box) -> None:
        # A sandbox whose processes end by themselves (out of memory, say) is gone for its users too.
        await box.ended.wait()
        async with sandbox.lock:
            if not sandbox.dead and sandbox.box is box and sandbox.archive is None:
                await self._end(sandbox, "its processes ended")

    def _schedule(self, sandbox: Sandbox) -> None:
        self._unschedule(sandbox)
        left = (sandbox.end_at - now()).total_seconds()
        loop = asyncio.get_running_loop()
        self._timers[sandbox.id] = loop.call_later(max(0.0, left), lambda: self._spawn(self._expire(sandbox)))

    def _unschedule(self, sandbox: Sandbox) -> None:
        timer = self._timers.pop(sandbox.id, None)
        if timer is not None:
            timer.cancel()

    async def _expire(self, sandbox: Sandbox) -> None:
        async with sandbox.lock:
            # While this waited for the lock the sandbox may have been given more time, paused or killed.
            if sandbox.state is not State.RUNNING:
                return
            if sandbox.end_at > now():
                self._schedule(sandbox)
            elif sandbox.request.lifecycle.pause_on_timeout:
                await self._pause(sandbox, "timeout", memory=sandbox.request.lifecycle.keep_memory)
            else:
                await self._end(sandbox, "timeout")

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _unknown(sandbox_id: str) -> ApiError:
    return ApiError(404, f"sandbox \"{sandbox_id}\" doesn't exist or you don't have access to it")


def check_timeout(timeout_s: int, maximum_s: int) -> None:
    """Raise ApiError 400 unless the timeout is positive and within the maximum."""
    if timeout_s <= 0:
        raise ApiError(400, "Timeout must be greater than 0")
    if timeout_s > maximum_s:
        raise ApiError(400, f"Timeout cannot be greater than {maximum_s // 3600} hours")
