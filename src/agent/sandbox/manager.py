"""Acquire and release: which sandbox a run works in, and who ends it.

`lifecycle.py` decides what is to be done; this module does it. State holds the sandbox's id, never the
handle: what is held here is a cache, lost at any time without harm. An id from state is not trusted: before a
connect and before a kill the sandbox's own metadata must name this deployment and thread, unless this very
run made or checked it.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent.errors import (
    SandboxConflictError,
    SandboxError,
    SandboxGoneError,
    SandboxUnreachableError,
)
from agent.sandbox.flights import Flights
from agent.sandbox.lifecycle import MAX_CREATIONS, Action, Event, plan, seen
from agent.sandbox.policy import SandboxPolicy
from agent.sandbox.provider import Handle, Provider, SandboxSpec
from agent.sandbox.retries import Retries
from agent.sandbox.runs import Run, Runs

logger = logging.getLogger(__name__)

APP = "langgraph-e2b-agent"


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


@dataclass(slots=True)
class _Step:
    """One acquire or release under way."""

    owner: Owner
    policy: SandboxPolicy
    run: Run
    sandbox_id: str
    setup: bool = False
    handle: Handle | None = None
    created: bool = False
    lost: bool = False
    error: SandboxError | None = None


class SandboxManager:
    """Finds, makes and ends sandboxes for the threads of one deployment.

    Args:
        provider: the sandbox service.
        policy: how sandboxes are kept where a run does not say otherwise.
        deployment: awaited for the deployment's name when a sandbox is first needed.
        retries: how often and how patiently a request is sent again.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        policy: SandboxPolicy,
        deployment: Callable[[], Awaitable[str]],
        retries: Retries | None = None,
    ) -> None:
        self.policy = policy
        self._provider = provider
        self._deployment = deployment
        self._retries = retries or Retries()
        self._runs = Runs()
        self._flights: Flights[Acquired] = Flights(self._end_unwanted)

    def begin(self, owner: Owner) -> None:
        """Note that a run begins: what is remembered under its id is of another one.

        Where a process gives its runs no ids, the thread's id stands for them.
        """
        self._runs.forget(owner.run)

    async def acquire(
        self,
        owner: Owner,
        sandbox_id: str,
        policy: SandboxPolicy | None = None,
        *,
        again: bool = False,
        setup: bool = False,
    ) -> Acquired:
        """Return a live sandbox for the owner: the one in state, or a new one.

        Parallel calls for one sandbox share one request. A call that is cancelled while it creates leaves no
        sandbox behind.

        Args:
            owner: whose sandbox.
            sandbox_id: the id in state; empty means none.
            policy: the run's policy, as state holds it; default the deployment's.
            again: without an id in state, look for one that an earlier attempt of this thread left.
            setup: a set-up command will run: with `internet="setup"` a new sandbox can reach the internet
                until `setup_done`.

        Raises:
            SandboxError: none could be had; an existing one is untouched.
        """
        run = self._runs.of(owner.run)
        held = run.held.get(sandbox_id)
        if held is not None and not held.gone:
            return Acquired(held, "cached")
        step = _Step(owner, policy or self.policy, run, sandbox_id, setup)
        needed = Event.NEEDED_AGAIN if again else Event.NEEDED
        key = f"{owner.run} {owner.thread} {sandbox_id}"
        return await self._flights.share(key, lambda: self._acquire(step, needed))

    async def _acquire(self, step: _Step, needed: Event) -> Acquired:
        # A sandbox held here at this point is one that work has just found gone.
        known_gone = step.sandbox_id in step.run.held
        step.run.life = seen(step.run.life, step.sandbox_id, live=known_gone)
        await self._go(step, Event.GONE if known_gone else needed)
        assert step.handle is not None
        how: Literal["connected", "created", "replaced"] = "created" if step.created else "connected"
        return Acquired(step.handle, "replaced" if step.lost else how)

    async def release(self, owner: Owner, sandbox_id: str, policy: SandboxPolicy | None = None) -> str:
        """End or keep the owner's sandbox, as the policy says; never raises: the run's answer exists already.

        What could not be ended is logged with the command that ends it, and pauses within one lease.

        Returns:
            The id that belongs into state: empty where the sandbox was ended.
        """
        policy = policy or self.policy
        step = _Step(owner, policy, self._runs.of(owner.run), sandbox_id)
        step.run.life = seen(step.run.life, sandbox_id, live=sandbox_id in step.run.held)
        await self._go(step, Event.FINISHED if policy.keep == "run" else Event.TURN_ENDED)
        self._runs.forget(owner.run)
        return sandbox_id if policy.keep == "thread" else ""

    async def rest(self, run_id: str) -> None:
        """Pause the sandboxes a run is connected to, because a human was asked; never raises."""
        run = self._runs.known(run_id)
        if run:
            for sandbox_id in list(run.held):
                await self._pause(run, sandbox_id)

    async def undo(self, run_id: str) -> None:
        """End the sandboxes a rolled-back run created: the state that named them is gone. Never raises.

        Those it merely used belong to the thread, whose earlier state still names them.
        """
        run = self._runs.known(run_id)
        self._runs.forget(run_id)
        for sandbox_id in sorted(run.made) if run else ():
            await self._kill(sandbox_id)

    async def setup_done(self, acquired: Acquired, policy: SandboxPolicy | None = None) -> None:
        """Cut the internet that a sandbox had for its set-up."""
        if (policy or self.policy).internet == "setup":
            await self._retries.answered(lambda: self._provider.cut_internet(acquired.sandbox_id))

    async def is_gone(self, acquired: Acquired, exc: Exception) -> bool:
        """Whether an exception that a tool raised means that the sandbox is gone.

        The SDK says "timeout" of a dead sandbox in some calls: then the service is asked.
        """
        meaning = exc if isinstance(exc, SandboxError) else self._provider.meaning(exc)
        if isinstance(meaning, SandboxUnreachableError):
            try:
                await self._retries.answered(lambda: self._provider.inspect(acquired.sandbox_id))
            except SandboxError as answer:
                meaning = answer
        acquired.handle.gone = acquired.handle.gone or isinstance(meaning, SandboxGoneError)
        return bool(acquired.handle.gone)

    async def _go(self, step: _Step, event: Event | None) -> None:
        """Let events lead to actions and actions to events until nothing is left to do."""
        while event is not None:
            step.run.life, actions = plan(step.run.life, event)
            event = None
            for action in actions:
                event = await self._do(action, step)

    async def _do(self, action: Action, step: _Step) -> Event | None:
        match action:
            case Action.FAIL:
                raise step.error or SandboxError(
                    f"{MAX_CREATIONS} sandboxes were made for this run and each was gone at once; "
                    "giving up. Check the template and the service's status."
                )
            case Action.ANNOUNCE_LOSS:
                logger.warning("sandbox %s of thread %s is gone", step.sandbox_id, step.owner.thread)
                step.lost = True
                step.run.held.pop(step.sandbox_id, None)
            case Action.RECORD:
                assert step.handle is not None
                step.handle.policy = step.policy
                step.run.held[step.handle.sandbox_id] = step.handle
            case Action.FORGET:
                step.run.held.pop(step.sandbox_id, None)
            case Action.LOG_LEAK:
                self._log_leak(step.sandbox_id, step.error)
            case Action.PAUSE:
                await self._pause(step.run, step.sandbox_id)
            case _:
                return await self._ask(action, step)
        return None

    async def _ask(self, action: Action, step: _Step) -> Event:
        """Send the action's request; its answer, or its failure, is the next event."""
        request = {
            Action.LOOK: self._look,
            Action.SEEK: self._seek,
            Action.CONNECT: self._connect,
            Action.CREATE: self._create,
            Action.KILL: self._end,
        }[action]
        try:
            return await self._retries.answered(lambda: request(step))
        except SandboxGoneError:
            return Event.KILLED if action is Action.KILL else Event.GONE
        except (SandboxUnreachableError, SandboxConflictError) as exc:
            step.error = exc
            return Event.UNREACHABLE
        except SandboxError as exc:
            step.error = exc
            return Event.REFUSED

    async def _look(self, step: _Step) -> Event:
        info = await self._provider.inspect(step.sandbox_id)
        if await self._is_ours(step.owner, info.metadata):
            return Event.SEEN_OURS
        logger.warning(
            "thread %s names sandbox %s of another owner; left alone", step.owner.thread, step.sandbox_id
        )
        return Event.SEEN_FOREIGN

    async def _seek(self, step: _Step) -> Event:
        async for info in self._provider.find(await self._metadata(step.owner)):
            step.sandbox_id = info.sandbox_id
            return Event.SEEN_OURS
        return Event.NONE_FOUND

    async def _connect(self, step: _Step) -> Event:
        step.handle = await self._provider.connect(step.sandbox_id, step.policy.lease_s)
        return Event.CONNECTED

    async def _create(self, step: _Step) -> Event:
        owner, policy = step.owner, step.policy
        spec = SandboxSpec(
            template=policy.template,
            lease_s=policy.lease_s,
            metadata=await self._metadata(owner) | {"run": owner.run, "keep": policy.keep},
            # The same in a retry of this request and of this task: no second sandbox is made.
            idempotency_key=f"{owner.task}-{step.run.made_by_task[owner.task]}".lower(),
            internet=_at_creation(policy, step.setup),
        )
        step.handle = await self._provider.create(spec)
        step.created = True
        step.run.made_by_task[owner.task] += 1
        step.run.made.add(step.handle.sandbox_id)
        logger.info("sandbox %s made for thread %s", step.handle.sandbox_id, owner.thread)
        return Event.CREATED

    async def _end(self, step: _Step) -> Event:
        await self._provider.kill(step.sandbox_id)
        logger.info("sandbox %s of thread %s ended", step.sandbox_id, step.owner.thread)
        return Event.KILLED

    async def _pause(self, run: Run, sandbox_id: str) -> None:
        # The next use looks and connects again: a paused sandbox is woken with its lease, not by accident.
        run.held.pop(sandbox_id, None)
        try:
            await self._retries.answered(lambda: self._provider.pause(sandbox_id))
        except SandboxGoneError:
            return
        except SandboxError as exc:
            logger.warning("sandbox %s could not be paused and is left to its lease: %s", sandbox_id, exc)

    async def _kill(self, sandbox_id: str) -> None:
        try:
            await self._retries.answered(lambda: self._provider.kill(sandbox_id))
        except SandboxError as exc:
            self._log_leak(sandbox_id, exc)

    def _log_leak(self, sandbox_id: str, error: SandboxError | None) -> None:
        logger.error(
            "sandbox %s could not be ended (%s); `e2b sandbox kill %s` ends it", sandbox_id, error, sandbox_id
        )

    async def _end_unwanted(self, acquired: Acquired) -> None:
        """End a sandbox whose creation nobody waits for any more; one that existed before is kept."""
        if acquired.how in {"created", "replaced"}:
            await self._kill(acquired.sandbox_id)

    async def _metadata(self, owner: Owner) -> dict[str, str]:
        return {
            "app": APP,
            "deployment": await self._deployment(),
            "graph": owner.graph,
            "thread": owner.thread,
        }

    async def _is_ours(self, owner: Owner, metadata: Mapping[str, str]) -> bool:
        return all(metadata.get(name) == value for name, value in (await self._metadata(owner)).items())


def _at_creation(policy: SandboxPolicy, setup: bool) -> Any:
    if policy.internet == "setup":
        return "on" if setup else "off"
    return policy.internet
