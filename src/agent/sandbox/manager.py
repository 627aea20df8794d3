"""Acquire and release: which sandbox a run works in, and who ends it.

State holds the sandbox's id, never the handle; the cache here is only a cache. An id from state is not
trusted: before a connect and before a kill the sandbox's own metadata must name this deployment and thread.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from agent.errors import SandboxConflictError, SandboxError, SandboxGoneError, SandboxUnreachableError
from agent.sandbox.flights import Flights
from agent.sandbox.provider import Handle, Provider, SandboxSpec

logger = logging.getLogger(__name__)

APP = "langgraph-e2b-agent"
RETRY_DELAYS_S = (0.2, 1.0, 3.0)
"""Between tries of a request that the service could not answer; the SDK retries some of them before us."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Owner:
    """On whose behalf a sandbox is acquired: the ids of the graph's run."""

    graph: str
    thread: str
    run: str
    task: str
    """LangGraph's task id: the same when a crashed step is tried again, another in every run."""


@dataclass(frozen=True, slots=True)
class Acquired:
    """A sandbox to work in, and how it was come by."""

    handle: Any
    """The live sandbox: with E2B an `e2b_code_interpreter.AsyncSandbox`."""
    how: Literal["cached", "connected", "created", "replaced"]
    """`replaced`: the id in state named a sandbox that is gone; files and variables are lost."""

    @property
    def sandbox_id(self) -> str:
        """The id that belongs into state."""
        return str(self.handle.sandbox_id)


class SandboxManager:
    """Finds, makes and ends sandboxes for the threads of one deployment.

    Args:
        provider: the sandbox service.
        template: what new sandboxes are made from.
        lease_s: how long a sandbox lives unattended, in seconds.
        deployment: awaited for the deployment's name when a sandbox is first needed.
        retry_delays_s: pauses between tries of a request that was not answered.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        template: str,
        lease_s: int,
        deployment: Callable[[], Awaitable[str]],
        retry_delays_s: tuple[float, ...] = RETRY_DELAYS_S,
    ) -> None:
        self._provider = provider
        self._template = template
        self._lease_s = lease_s
        self._deployment = deployment
        self._retry_delays_s = retry_delays_s
        self._handles: dict[str, Handle] = {}
        self._flights: Flights[Acquired] = Flights(self._end_unwanted)

    async def acquire(self, owner: Owner, sandbox_id: str, *, ordinal: int = 0) -> Acquired:
        """Return a live sandbox for the owner: the one in state, or a new one.

        Parallel calls for one sandbox share one request. A call that is cancelled while it creates leaves
        no sandbox behind.

        Args:
            owner: whose sandbox.
            sandbox_id: the id in state; empty means none.
            ordinal: which creation within the task this is, from 0; part of the idempotency key.

        Raises:
            SandboxError: none could be had; an existing one is untouched.
        """
        cached = self._handles.get(sandbox_id)
        if cached is not None:
            return Acquired(cached, "cached")
        key = sandbox_id or f"{owner.task}-{ordinal}"
        return await self._flights.share(key, lambda: self._acquire(owner, sandbox_id, ordinal))

    async def _acquire(self, owner: Owner, sandbox_id: str, ordinal: int) -> Acquired:
        found, lost = await self._find(owner, sandbox_id) if sandbox_id else (None, False)
        if found is None:
            handle = await self._create(owner, ordinal)
            found = Acquired(handle, "replaced" if lost else "created")
        self._handles[found.sandbox_id] = found.handle
        return found

    async def _find(self, owner: Owner, sandbox_id: str) -> tuple[Acquired | None, bool]:
        """Return the sandbox in state if it is alive and ours, and whether it was lost."""
        try:
            info = await self._answered(lambda: self._provider.inspect(sandbox_id))
            if not await self._is_ours(owner, info.metadata):
                logger.warning(
                    "state of thread %s names sandbox %s of another owner; left alone",
                    owner.thread,
                    sandbox_id,
                )
                return None, False
            handle = await self._answered(lambda: self._provider.connect(sandbox_id, self._lease_s))
        except SandboxGoneError:
            logger.warning("sandbox %s of thread %s is gone", sandbox_id, owner.thread)
            return None, True
        return Acquired(handle, "connected"), False

    async def _create(self, owner: Owner, ordinal: int) -> Handle:
        spec = SandboxSpec(
            template=self._template,
            lease_s=self._lease_s,
            metadata=await self._metadata(owner) | {"run": owner.run},
            idempotency_key=f"{owner.task}-{ordinal}",
        )
        handle = await self._answered(lambda: self._provider.create(spec))
        logger.info("sandbox %s made for thread %s", handle.sandbox_id, owner.thread)
        return handle

    async def release(self, owner: Owner, sandbox_id: str) -> None:
        """End the owner's sandbox; never raises, since the run's answer exists already.

        What could not be ended is logged with the command that ends it, and pauses within one lease.
        """
        checked = self._handles.pop(sandbox_id, None) is not None
        try:
            if not checked:
                info = await self._answered(lambda: self._provider.inspect(sandbox_id))
                if not await self._is_ours(owner, info.metadata):
                    return
        except SandboxGoneError:
            return
        except SandboxError as exc:
            logger.warning("sandbox %s could not be looked at and is left to its lease: %s", sandbox_id, exc)
            return
        await self._kill(sandbox_id)

    async def _kill(self, sandbox_id: str) -> None:
        try:
            await self._answered(lambda: self._provider.kill(sandbox_id))
            logger.info("sandbox %s ended", sandbox_id)
        except SandboxError as exc:
            logger.error(
                "sandbox %s could not be ended (%s); `e2b sandbox kill %s` ends it",
                sandbox_id,
                exc,
                sandbox_id,
            )

    async def _end_unwanted(self, acquired: Acquired) -> None:
        if acquired.how in {"created", "replaced"}:
            self._handles.pop(acquired.sandbox_id, None)
            await self._kill(acquired.sandbox_id)

    async def _metadata(self, owner: Owner) -> dict[str, str]:
        return {
            "app": APP,
            "deployment": await self._deployment(),
            "graph": owner.graph,
            "thread": owner.thread,
        }

    async def _is_ours(self, owner: Owner, metadata: Any) -> bool:
        return all(metadata.get(name) == value for name, value in (await self._metadata(owner)).items())

    async def _answered(self, request: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Send a request again while the service does not answer it, with growing pauses."""
        for delay_s in self._retry_delays_s:
            try:
                return await request()
            except (SandboxUnreachableError, SandboxConflictError):
                await asyncio.sleep(delay_s)
        return await request()
