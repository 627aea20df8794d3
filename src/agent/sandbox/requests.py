"""What one acquire or release asks of the sandbox service; each answer is an event of the lifecycle."""

import hashlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.errors import (
    SandboxConflictError,
    SandboxError,
    SandboxGoneError,
    SandboxQuotaError,
    SandboxUnreachableError,
)
from agent.sandbox.lifecycle import Action, Event, Life
from agent.sandbox.owners import USE, Owner
from agent.sandbox.policy import SandboxPolicy
from agent.sandbox.provider import Handle, Provider, SandboxSpec
from agent.sandbox.retries import Retries
from agent.sandbox.runs import Run, Runs

logger = logging.getLogger(__name__)

INTERNET = "internet"
"""The metadata that says what of the internet a sandbox was made with."""


@dataclass(slots=True)
class Step:
    """One acquire or release under way."""

    owner: Owner
    policy: SandboxPolicy
    run: Run
    sandbox_id: str
    setup: bool = False
    life: Life = field(default_factory=Life)
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Of the sandbox that is about to be connected."""
    handle: Handle | None = None
    created: bool = False
    lost: bool = False
    error: SandboxError | None = None


class Requests:
    """Sends the requests of a step, patiently, and says what their answers mean.

    Args:
        provider: the sandbox service.
        deployment: awaited for the deployment's name.
        retries: how often and how patiently a request is sent again.
        runs: what is known of runs; sandboxes that a rolled-back run is ending are not adopted.
    """

    def __init__(
        self,
        provider: Provider,
        deployment: Callable[[], Awaitable[str]],
        retries: Retries,
        runs: Runs,
    ) -> None:
        self._provider = provider
        self._deployment = deployment
        self._retries = retries
        self._runs = runs
        self._requests: dict[Action, Callable[[Step], Coroutine[Any, Any, Event]]] = {
            Action.LOOK: self._look,
            Action.SEEK: self._seek,
            Action.CONNECT: self._connect,
            Action.CREATE: self._create,
            Action.KILL: self._end,
        }

    async def ask(self, action: Action, step: Step) -> Event:
        """Send the action's request; its answer, or its failure, is the next event."""
        try:
            return await self._retries.answered(lambda: self._requests[action](step))
        except SandboxGoneError:
            return Event.KILLED if action is Action.KILL else Event.GONE
        except (SandboxUnreachableError, SandboxConflictError) as exc:
            step.error = exc
            return Event.UNREACHABLE
        except SandboxError as exc:
            step.error = exc
            return Event.REFUSED

    async def _look(self, step: Step) -> Event:
        info = await self._provider.inspect(step.sandbox_id)
        if step.owner.owns(info.metadata, await self._deployment()):
            step.metadata = info.metadata
            return Event.SEEN_OURS
        logger.warning(
            "thread %s names sandbox %s of another owner; left alone", step.owner.thread, step.sandbox_id
        )
        return Event.SEEN_FOREIGN

    async def _seek(self, step: Step) -> Event:
        # Of this turn only: an earlier one's may be about to be ended by the clean-up of its run.
        async for info in self._provider.find(step.owner.turn_identity(await self._deployment())):
            if info.sandbox_id not in self._runs.doomed and not info.metadata.get(USE):
                step.sandbox_id, step.metadata = info.sandbox_id, info.metadata
                return Event.SEEN_OURS
        return Event.NONE_FOUND

    async def _connect(self, step: Step) -> Event:
        handle = await self._provider.connect(step.sandbox_id, step.policy.lease_s)
        if handle.sandbox_id != step.sandbox_id:
            # The service answered with another sandbox: it is ours only if it says so itself.
            info = await self._provider.inspect(handle.sandbox_id)
            if not step.owner.owns(info.metadata, await self._deployment()):
                raise SandboxError(
                    f"connecting to sandbox {step.sandbox_id} led to {handle.sandbox_id}, which belongs to "
                    "another owner; nothing was done in it"
                )
            step.metadata = info.metadata
        await self._narrow_internet(handle.sandbox_id, step)
        step.handle = handle
        return Event.CONNECTED

    async def _narrow_internet(self, sandbox_id: str, step: Step) -> None:
        """Take from a sandbox what it was made with of the internet and the run may not have.

        It was made for a set-up command that was cut short, or under other settings.
        """
        allowed = step.policy.internet_at_creation(setup=False)
        had = step.metadata.get(INTERNET, "off")
        if had != "off" and allowed != "on" and had != _internet_word(allowed):
            await self._provider.cut_internet(sandbox_id, except_for=() if allowed == "off" else allowed)

    async def _create(self, step: Step) -> Event:
        owner, policy = step.owner, step.policy
        internet = policy.internet_at_creation(setup=step.setup)
        about = {"keep": policy.keep, INTERNET: _internet_word(internet)}
        spec = SandboxSpec(
            template=policy.template,
            lease_s=policy.lease_s,
            metadata=owner.metadata(await self._deployment()) | about,
            idempotency_key=_key(owner, step.run.made_by_task[owner.task]),
            internet=internet,
        )
        step.handle = await self._provider.create(spec)
        step.created = True
        step.run.made_by_task[owner.task] += 1
        step.run.made.add(step.handle.sandbox_id)
        logger.info("sandbox %s made for thread %s", step.handle.sandbox_id, owner.thread)
        return Event.CREATED

    async def fresh(self, step: Step) -> Handle:
        """Make a sandbox beside the thread's own, which is paused where the account has no room for both.

        Raises:
            SandboxError: none could be had.
        """
        spec = SandboxSpec(
            template=step.policy.template,
            lease_s=step.policy.lease_s,
            metadata=step.owner.fresh_metadata(await self._deployment()),
            # Of this creation alone: what an earlier attempt of the task made is not fresh any more.
            idempotency_key=str(uuid.uuid4()),
            internet=step.policy.internet_at_creation(setup=step.setup),
            # Nobody ever comes back to it.
            on_timeout="kill",
        )

        async def create() -> Handle:
            try:
                return await self._provider.create(spec)
            except SandboxQuotaError:
                if step.sandbox_id in step.run.held:
                    await self.pause(step.run, step.sandbox_id)
                raise

        handle = await self._retries.answered(create)
        logger.info("sandbox %s made to verify in, for thread %s", handle.sandbox_id, step.owner.thread)
        return handle

    async def _end(self, step: Step) -> Event:
        await self._provider.kill(step.sandbox_id)
        logger.info("sandbox %s of thread %s ended", step.sandbox_id, step.owner.thread)
        return Event.KILLED

    async def pause(self, run: Run, sandbox_id: str) -> None:
        """Pause a sandbox the run holds, and let go of it; a failure is logged."""
        # The next use looks and connects again: a paused sandbox is woken with its lease, not by accident.
        run.held.pop(sandbox_id, None)
        try:
            await self._retries.answered(lambda: self._provider.pause(sandbox_id))
        except SandboxGoneError:
            return
        except SandboxError as exc:
            logger.warning("sandbox %s could not be paused and is left to its lease: %s", sandbox_id, exc)

    async def kill(self, sandbox_id: str, why: str = "its run is gone") -> None:
        """End a sandbox that this process made; a failure is logged."""
        try:
            await self._retries.answered(lambda: self._provider.kill(sandbox_id))
            logger.info("sandbox %s ended: %s", sandbox_id, why)
        except SandboxError as exc:
            self.log_leak(sandbox_id, exc)

    def log_leak(self, sandbox_id: str, error: SandboxError | None) -> None:
        """Log a sandbox that could not be ended, with what ends it."""
        logger.error(
            "sandbox %s could not be ended (%s); `sandbox-agent sandboxes sweep` or `e2b sandbox kill %s` "
            "ends it",
            sandbox_id,
            error,
            sandbox_id,
        )


def _internet_word(internet: str | Sequence[str]) -> str:
    """Return what metadata say of the internet a sandbox was made with: off, on, or a digest of hosts."""
    if isinstance(internet, str):
        return internet
    return f"hosts-{hashlib.sha256(','.join(internet).encode()).hexdigest()[:16]}"


def _key(owner: Owner, ordinal: int) -> str:
    """Return what names a creation: the same in a retry of the request and of the task, by the same run.

    Another run may go on from the same checkpoint, with the same task; its request has another body.
    """
    return f"{uuid.uuid5(uuid.NAMESPACE_OID, f'{owner.run} {owner.task}')}-{ordinal}"
