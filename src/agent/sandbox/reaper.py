"""Finding and ending the sandboxes that no run could end.

A run that fails, is cancelled or loses its thread cannot end its sandbox; the lease pauses it, and this ends
it. What is to be done with one is decided by `verdict`, without I/O. Rules, in order of weight:

1. Only sandboxes whose metadata name this deployment are looked at.
2. A running one is spared: somebody works in it, or its lease pauses it soon.
3. One whose thread has work to do, or waits for a human within the human's limit, is spared.
4. When the LangGraph server does not say how a thread stands, nothing is done to its sandbox. Where it is
   there, and the server cannot read it, the sandbox is kept as long as for a human.

Two reapers at once do no harm: ending what is already gone is no error.
"""

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Literal, Protocol

from agent.errors import SandboxError, SandboxGoneError
from agent.sandbox.owners import APP, USE
from agent.sandbox.provider import Provider, SandboxInfo
from agent.sandbox.retries import Retries

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ThreadView:
    """How a thread stands on its LangGraph server."""

    standing: Literal["gone", "busy", "waiting", "idle", "unreadable"]
    """`busy`: a run works or is queued. `waiting`: its state holds an unanswered question. `unreadable`:
    it is there, and the server refuses to tell its state."""
    since: datetime | None = None
    """When it came to stand so, as far as its newest checkpoint says."""
    keeps: str = ""
    """The sandbox that its newest turn kept for the next one, whatever it was first made for."""


class Threads(Protocol):
    """What the reaper asks about threads."""

    async def view(self, thread_id: str) -> ThreadView:
        """Say how a thread stands.

        Raises:
            Exception: the server did not say; the reaper then ends nothing of the thread.
        """


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a paused sandbox is kept for someone to come back to."""

    idle: timedelta = timedelta(days=1)
    """For its thread's next turn, where it was kept for that."""
    human: timedelta = timedelta(days=7)
    """For a human's answer."""


class Fate(StrEnum):
    """What becomes of a sandbox."""

    SPARE = "spare"
    END = "end"
    ENDED = "ended"
    FAILED = "not ended"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to become of one sandbox, or what became of it, and why."""

    sandbox: SandboxInfo
    fate: Fate
    reason: str


def verdict(sandbox: SandboxInfo, thread: ThreadView | None, now: datetime, patience: Patience) -> Verdict:
    """Decide about one sandbox of this deployment.

    Args:
        sandbox: as the service lists it.
        thread: how its thread stands; None where no server was asked.
        now: the time, with its zone.
        patience: how long paused ones are kept.
    """

    def kept(since: datetime, limit: timedelta, what: str) -> Verdict:
        over = now - since > limit
        words = f"{what} for {_words(now - since)}; the limit is {_words(limit)}"
        return Verdict(sandbox, Fate.END if over else Fate.SPARE, words)

    if sandbox.state == "running":
        return Verdict(sandbox, Fate.SPARE, "running")
    if sandbox.metadata.get(USE):
        return Verdict(sandbox, Fate.END, f"made to {sandbox.metadata[USE]} in, and nobody comes back to it")
    if sandbox.metadata.get("home") == "process":
        # No server knows its thread; whether someone is asked there cannot be seen from here.
        return kept(sandbox.end_at, patience.human, "made outside a server, paused")
    if thread is None:
        return Verdict(sandbox, Fate.SPARE, "its thread was not asked about")
    match thread.standing:
        case "gone":
            return Verdict(sandbox, Fate.END, "its thread is gone")
        case "busy":
            return Verdict(sandbox, Fate.SPARE, "its thread has a run")
        case "waiting":
            return kept(thread.since or sandbox.end_at, patience.human, "its thread waits for a human")
        case "unreadable":
            return kept(sandbox.end_at, patience.human, "its thread cannot be read; paused")
    if sandbox.metadata.get("keep") == "thread" or thread.keeps == sandbox.sandbox_id:
        return kept(max(sandbox.end_at, thread.since or sandbox.end_at), patience.idle, "idle")
    return Verdict(sandbox, Fate.END, "its run has ended")


def _words(span: timedelta) -> str:
    seconds = max(int(span.total_seconds()), 0)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds} s"


class Reaper:
    """Looks at all sandboxes of a deployment, and ends those that nobody comes back to.

    Args:
        provider: the sandbox service.
        threads: the deployment's LangGraph server, seeing all threads: one that it hides looks gone.
        deployment: the deployment's name; sandboxes of others are never touched.
        patience: how long paused ones are kept.
        retries: how patiently requests to the service are sent again.
        clock: the time, with its zone.
    """

    def __init__(
        self,
        provider: Provider,
        threads: Threads,
        *,
        deployment: str,
        patience: Patience | None = None,
        retries: Retries | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if not deployment:
            raise ValueError("a reaper needs the deployment's name")
        self._provider = provider
        self._threads = threads
        self._deployment = deployment
        self._patience = patience or Patience()
        self._retries = retries or Retries()
        self._clock = clock

    async def look(self) -> AsyncIterator[Verdict]:
        """Yield a verdict on each sandbox; nothing is ended.

        Raises:
            SandboxError: the service did not list them.
            Exception: what `Threads.view` raised: without the server's word nothing can be decided.
        """
        async for found, _ in self._judged():
            yield found

    async def sweep(self) -> AsyncIterator[Verdict]:
        """Yield what became of each sandbox; those nobody comes back to are ended.

        One that cannot be ended is reported as failed, and the others are still looked at.

        Raises:
            SandboxError: the service did not list them.
            Exception: what `Threads.view` raised; those reported before are ended, no others.
        """
        async for found, thread in self._judged():
            yield await self._end(found, thread) if found.fate is Fate.END else found

    async def _judged(self) -> AsyncIterator[tuple[Verdict, ThreadView | None]]:
        for sandbox in await self._retries.answered(self._all):
            # Asked after the listing: a run that began in between shows as busy, and is spared.
            asks = sandbox.state == "paused" and sandbox.metadata.get("home") != "process"
            thread = await self._threads.view(sandbox.metadata.get("thread", "")) if asks else None
            yield verdict(sandbox, thread, self._clock(), self._patience), thread

    async def _all(self) -> list[SandboxInfo]:
        ours = {"app": APP, "deployment": self._deployment}
        return [sandbox async for sandbox in self._provider.find(ours)]

    async def _end(self, found: Verdict, thread: ThreadView | None) -> Verdict:
        sandbox_id = found.sandbox.sandbox_id
        try:
            # Asked once more, by itself: someone may have come back to it since it was listed.
            now = await self._retries.answered(lambda: self._provider.inspect(sandbox_id))
            again = verdict(now, thread, self._clock(), self._patience)
            if again.fate is not Fate.END:
                return again
            await self._retries.answered(lambda: self._provider.kill(sandbox_id))
        except SandboxGoneError:
            pass
        except SandboxError as exc:
            logger.error("sandbox %s could not be ended: %s", sandbox_id, exc)
            return replace(found, fate=Fate.FAILED, reason=str(exc))
        logger.info("sandbox %s ended: %s", sandbox_id, found.reason)
        return replace(found, fate=Fate.ENDED)
