"""A sandbox: what the control plane knows of it, its box while it has one, and its transitions."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import enum
import logging
import pathlib
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeVar

from e2b_local.archives import save
from e2b_local.box import Box
from e2b_local.egress import Egress

_log = logging.getLogger(__name__)
T = TypeVar("T")
_ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


class State(enum.Enum):
    """Where a sandbox is in its life; `DEAD` is final."""

    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


class Interruption(enum.Enum):
    """Why a stream was cut off by the server."""

    PAUSED = "paused"
    KILLED = "killed"


@dataclasses.dataclass(frozen=True)
class Lifecycle:
    """What happens when a sandbox's time is over, and whether traffic wakes it afterwards."""

    pause_on_timeout: bool = False
    auto_resume: bool = False
    keep_memory: bool = True


@dataclasses.dataclass(frozen=True)
class Request:
    """What a sandbox was created with."""

    template: str
    timeout_s: int
    metadata: dict[str, str]
    envs: dict[str, str]
    lifecycle: Lifecycle
    egress: Egress | None = None
    internet: bool | None = None
    """As it was asked for, and is told again; so is `network`."""
    network: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def public_traffic(self) -> bool:
        """Whether a port of a program inside may be asked for without the traffic token."""
        return self.network.get("allowPublicTraffic") is not False


class Sandbox:
    """One sandbox; its transitions happen one at a time under `lock`."""

    def __init__(self, sandbox_id: str, request: Request, box: Box) -> None:
        self.id = sandbox_id
        self.request = request
        # Secret and per sandbox: it opens the sandbox's own traffic, and finds it for a signed address.
        self.token = secrets.token_hex(32)
        self.traffic_token = None if request.public_traffic else secrets.token_hex(32)
        self.state = State.RUNNING
        self.started_at = now()
        self.end_at = self.started_at + datetime.timedelta(seconds=request.timeout_s)
        self.lock = asyncio.Lock()
        self.box = box
        # Its files while it is paused without memory: it then has no box.
        self.archive: pathlib.Path | None = None
        self._streams: set[asyncio.Future[Interruption]] = set()

    @property
    def dead(self) -> bool:
        """Whether it has ended for good."""
        return self.state is State.DEAD

    @contextlib.contextmanager
    def stream(self) -> Iterator[asyncio.Future[Interruption]]:
        """Give a future that tells an open stream when a pause or the end cuts it off."""
        future: asyncio.Future[Interruption] = asyncio.get_running_loop().create_future()
        self._streams.add(future)
        try:
            yield future
        finally:
            self._streams.discard(future)

    def interrupt_streams(self, why: Interruption) -> None:
        """Cut off every open stream."""
        for future in self._streams:
            if not future.done():
                future.set_result(why)

    async def pause(self) -> None:
        """Stop every process, keeping its memory; call under the lock, while running."""
        self.interrupt_streams(Interruption.PAUSED)
        await self.box.freeze()
        self.state = State.PAUSED
        self.end_at = now()  # as the cloud lists it: when it was last paused

    async def resume(self, timeout_s: int) -> None:
        """Let it go on, with `timeout_s` from now; call under the lock, while paused."""
        await self.box.thaw()
        self.state = State.RUNNING
        self.end_at = now() + datetime.timedelta(seconds=timeout_s)

    async def pause_to(self, archive: pathlib.Path) -> None:
        """Keep only the files, in `archive`, and end every process; call under the lock, while running.

        Raises:
            OpError, BoxGoneError: the files could not be kept; it still runs.
        """
        await self.still(lambda: save(self.box, archive))
        self.archive = archive
        self.state = State.PAUSED
        self.end_at = now()
        self.interrupt_streams(Interruption.PAUSED)
        await self.box.kill()

    async def forget(self, archive: pathlib.Path) -> None:
        """Keep only the files of what was paused with its memory; call under the lock, while paused.

        Raises:
            OpError, BoxGoneError: the files could not be kept; its memory is still there.
        """
        await save(self.box, archive)
        self.archive = archive
        await self.box.kill()

    def boot(self, box: Box, timeout_s: int) -> None:
        """Go on in a new box that has got the files back; call under the lock, while paused."""
        assert self.archive is not None
        self.archive.unlink(missing_ok=True)
        self.archive = None
        self.box = box
        self.state = State.RUNNING
        self.end_at = now() + datetime.timedelta(seconds=timeout_s)

    async def still(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work` while every process stands still; call under the lock, while running."""
        await self.box.freeze()
        try:
            return await work()
        finally:
            await self.box.thaw()

    async def end(self) -> None:
        """End every process; final."""
        self.state = State.DEAD
        self.interrupt_streams(Interruption.KILLED)
        await self.box.kill()
        if self.archive is not None:
            self.archive.unlink(missing_ok=True)


def new_id() -> str:
    """Return an id in the form of E2B's."""
    return "i" + "".join(secrets.choice(_ID_ALPHABET) for _ in range(19))


def now() -> datetime.datetime:
    """Return the time in UTC."""
    return datetime.datetime.now(datetime.UTC)
