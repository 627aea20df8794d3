"""Acquire and release: which sandbox a run works in, and who ends it.

`lifecycle.py` decides what is to be done; this module does it. State holds the sandbox's id, never the
handle: what is held here is a cache, lost at any time without harm. Nothing from state is trusted, since
every client of a thread can write it: before a connect and before a kill the sandbox's own metadata must name
this deployment and thread, unless this very run made or checked it, and a run's policy counts as far as the
deployment's allows.
"""

import asyncio
import contextlib
import functools
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from agent.errors import SandboxError, SandboxGoneError, SandboxUnreachableError
from agent.redaction.secrets import Secrets
from agent.sandbox.environment import Environment
from agent.sandbox.flights import Flights
from agent.sandbox.lifecycle import MAX_CREATIONS, Action, Event, plan, seen
from agent.sandbox.owners import Owner, named
from agent.sandbox.policy import SandboxPolicy
from agent.sandbox.provider import Handle, Provider
from agent.sandbox.requests import Requests, Step
from agent.sandbox.retries import Retries
from agent.sandbox.runs import Runs

logger = logging.getLogger(__name__)


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
        policy: how sandboxes are kept where a run does not say otherwise.
        deployment: awaited for the deployment's name when a sandbox is first needed.
        retries: how often and how patiently a request is sent again.
        environment: where the values of the variables that the policy names come from.
        secrets: what must not be shown of what comes out of sandboxes, for those who show it.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        policy: SandboxPolicy,
        deployment: Callable[[], Awaitable[str]],
        retries: Retries | None = None,
        environment: Environment | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        self.policy = policy
        self.secrets = secrets or Secrets(dict)
        self._provider = provider
        self._retries = retries or Retries()
        self._environment = environment
        self._runs = Runs()
        self._requests = Requests(provider, deployment, self._retries, self._runs)
        self._flights: Flights[Acquired] = Flights(self._end_unwanted)
        self._endings: set[asyncio.Task[None]] = set()

    def begin(self, owner: Owner) -> None:
        """Note that a run begins.

        Where a process gives its runs no ids, the thread's id stands for them: what is remembered under it is
        of another run then. A node that is repeated, and an agent within one, begin nothing anew: how many
        sandboxes a run has made is never forgotten in it.
        """
        run = self._runs.of(owner.run)
        if owner.run == owner.thread and run.begun_by not in {"", owner.task}:
            self._runs.forget(owner.run)
            run = self._runs.of(owner.run)
        run.begun_by = owner.task

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
            again: without an id in state, look for one that an earlier attempt of this turn left, as is done
                for a run that the server began again.
            setup: a set-up command will run: with `internet="setup"` a new sandbox can reach the internet
                until `setup_done`.

        Raises:
            SandboxError: none could be had; an existing one is untouched.
        """
        run, sandbox_id = self._runs.of(owner.run), named(sandbox_id)
        run.threadless = owner.threadless
        if owner.retried:
            run.chains.add(owner.chain)
        if sandbox_id:
            run.recorded.add(sandbox_id)
        held = run.held.get(sandbox_id)
        if held is not None and not held.gone:
            return Acquired(held, "cached")
        step = Step(owner, self._allowed(policy), run, sandbox_id, setup)
        needed = Event.NEEDED_AGAIN if again or owner.retried else Event.NEEDED
        key = f"{owner.run} {owner.thread} {sandbox_id}"
        return await self._flights.share(key, lambda: self._acquire(step, needed))

    async def _acquire(self, step: Step, needed: Event) -> Acquired:
        # A sandbox held here at this point is one that work has just found gone.
        known_gone = step.sandbox_id in step.run.held
        step.life = seen(step.life, step.sandbox_id, live=known_gone)
        await self._go(step, Event.GONE if known_gone else needed)
        assert step.handle is not None
        how: Literal["connected", "created", "replaced"] = "created" if step.created else "connected"
        return Acquired(step.handle, "replaced" if step.lost else how)

    @contextlib.asynccontextmanager
    async def fresh(
        self, owner: Owner, beside: str, policy: SandboxPolicy | None = None, *, setup: bool = False
    ) -> AsyncIterator[Acquired]:
        """Make a sandbox that nobody has worked in, and end it on the way out, whatever happens.

        It is not the thread's: no state names it, no run adopts it, none pauses it. Where it cannot be ended,
        or this process dies, it ends with its lease.

        Args:
            owner: on whose behalf.
            beside: the thread's own sandbox: it is paused if the account's limit has no room for both, and
                wakes when it is acquired again.
            policy: as of `acquire`.
            setup: as of `acquire`.

        Raises:
            SandboxError: none could be had.
        """
        step = Step(owner, self._allowed(policy), self._runs.of(owner.run), beside, setup)
        made = await self._flights.share(f"fresh {uuid.uuid4()}", lambda: self._fresh(step))
        try:
            yield made
        finally:
            # A task of its own: a run that is cancelled twice must not leave it.
            ending = asyncio.create_task(self._requests.kill(made.sandbox_id, "nothing is left to verify"))
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)
            await asyncio.shield(ending)

    async def _fresh(self, step: Step) -> Acquired:
        handle = await self._requests.fresh(step)
        self._equip(handle, step)
        return Acquired(handle, "created")

    async def release(self, owner: Owner, sandbox_id: str, policy: SandboxPolicy | None = None) -> str:
        """End or keep the owner's sandbox, as the policy says; never raises: the run's answer exists already.

        That of a run without a thread is ended: no later turn could find it.

        What could not be ended is logged with the command that ends it, and pauses within one lease.

        Returns:
            The id that belongs into state: empty where the sandbox was ended.
        """
        policy, sandbox_id = self._allowed(policy), named(sandbox_id)
        if owner.threadless:
            policy = policy.model_copy(update={"keep": "run"})
        step = Step(owner, policy, self._runs.of(owner.run), sandbox_id)
        step.life = seen(step.life, sandbox_id, live=sandbox_id in step.run.held)
        await self._go(step, Event.FINISHED if policy.keep == "run" else Event.TURN_ENDED)
        step.run.close()
        return sandbox_id if policy.keep == "thread" else ""

    def begun_again(self, chains: set[str]) -> str:
        """Return the id of the run that asked for a sandbox in one of these chains; empty where none did."""
        return self._runs.with_chain(chains)

    async def rest(self, run_id: str) -> None:
        """Pause the sandboxes a run is connected to, because a human was asked; never raises.

        Those of a run without a thread are ended: nobody can go on with it.
        """
        run = self._runs.known(run_id)
        if run and run.threadless:
            await self.undo(run_id)
        elif run:
            for sandbox_id in list(run.held):
                await self._requests.pause(run, sandbox_id)

    def recorded(self, owner: Owner, sandbox_id: str) -> None:
        """Note that an id is on its way into state: later turns will find it there."""
        self._runs.of(owner.run).recorded.add(sandbox_id)

    async def over(self, run_id: str) -> None:
        """End what a run without a thread has left, such as one that was told to stop before a node."""
        run = self._runs.known(run_id)
        if run and run.threadless:
            await self.undo(run_id)

    async def undo(self, run_id: str, *, unrecorded_only: bool = False) -> None:
        """End the sandboxes that a run created and no state names: it was taken back. Never raises.

        Those it merely used belong to the thread, whose earlier state still names them.

        Args:
            run_id: the run.
            unrecorded_only: state is kept, so that what it names is kept too; not that of a run without a
                thread.
        """
        run = self._runs.known(run_id)
        self._runs.forget(run_id)
        if run is None:
            return
        ending = run.made - run.recorded if unrecorded_only else set(run.made)
        if run.threadless:
            ending = run.made | set(run.held)
        # Noted before the first request: a run that goes on from the same state does not adopt them.
        self._runs.doomed |= ending
        for sandbox_id in sorted(ending):
            await self._requests.kill(sandbox_id)
        self._runs.doomed -= ending

    async def setup_done(self, acquired: Acquired, policy: SandboxPolicy | None = None) -> None:
        """Cut the internet that a sandbox had for its set-up."""
        if self._allowed(policy).internet == "setup":
            await self._retries.answered(lambda: self._provider.cut_internet(acquired.sandbox_id))

    def _allowed(self, policy: SandboxPolicy | None) -> SandboxPolicy:
        return (policy or self.policy).met_with(self.policy)

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

    async def _go(self, step: Step, event: Event | None) -> None:
        """Let events lead to actions and actions to events until nothing is left to do."""
        while event is not None:
            # Other acquisitions of the run may have made sandboxes since.
            step.life, actions = plan(replace(step.life, creations=step.run.creations), event)
            step.run.creations, event = step.life.creations, None
            for action in actions:
                event = await self._do(action, step)

    async def _do(self, action: Action, step: Step) -> Event | None:
        match action:
            case Action.FAIL:
                raise step.error or SandboxError(
                    f"{MAX_CREATIONS} sandboxes were made for this run and each was lost; no more are made. "
                    "A command that uses up their memory, the template or the service may have ended them: "
                    "look there before a new run."
                )
            case Action.ANNOUNCE_LOSS:
                logger.warning("sandbox %s of thread %s is gone", step.sandbox_id, step.owner.thread)
                step.lost = True
                step.run.held.pop(step.sandbox_id, None)
            case Action.RECORD:
                self._record(step)
            case Action.FORGET:
                step.run.held.pop(step.sandbox_id, None)
            case Action.LOG_LEAK:
                self._requests.log_leak(step.sandbox_id, step.error)
            case Action.PAUSE:
                await self._requests.pause(step.run, step.sandbox_id)
            case Action.CREATE if step.life.creations > 1:
                await self._retries.before_another()
                return await self._requests.ask(action, step)
            case _:
                return await self._requests.ask(action, step)
        return None

    def _record(self, step: Step) -> None:
        assert step.handle is not None
        self._equip(step.handle, step)
        step.run.held[step.handle.sandbox_id] = step.handle

    def _equip(self, handle: Handle, step: Step) -> None:
        handle.policy = step.policy
        handle.retries = self._retries
        if self._environment and step.policy.envs:
            handle.environment = functools.partial(self._environment, step.owner, step.policy.envs)

    async def _end_unwanted(self, acquired: Acquired) -> None:
        """End a sandbox whose creation nobody waits for any more; one that existed before is kept."""
        if acquired.how in {"created", "replaced"}:
            await self._requests.kill(acquired.sandbox_id)
