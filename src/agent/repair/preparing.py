"""From an id in state to a sandbox with the project in it, as far as the repair has come."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph.runtime import Runtime

from agent.context import Context
from agent.errors import InputError, SandboxError
from agent.repair import record
from agent.repair.baseline import Baseline, Sent, Uploaded
from agent.repair.lasting import NAME
from agent.repair.request import NO_ARCHIVE
from agent.repair.testing import policy_of, set_up
from agent.repair.workspace import Marker, Workspace
from agent.sandbox.live import box
from agent.sandbox.manager import Acquired, SandboxManager
from agent.sandbox.notices import announce, notice
from agent.sandbox.owners import owner_of
from agent.sandbox.provider import CommandResult

State = Mapping[str, Any]


ARCHIVE_LOST = (
    "the sandbox that held the uploaded archive is lost, and the archive with it. What was done so far is in "
    "the state's `diff`; upload the archive again and start anew."
)


@dataclass(frozen=True, slots=True)
class Ready:
    """A prepared sandbox."""

    acquired: Acquired
    work: Workspace
    baseline: Baseline
    marker: Marker
    warnings: list[str]
    anew: dict[str, Any] = field(default_factory=dict)
    """Where it was prepared again: what state holds of that, since the set-up has run later than it says."""

    def update(self, state: State, more: Iterable[str] = ()) -> dict[str, Any]:
        """Return what belongs into state of this, with more words of warning if there are any."""
        warnings = dict.fromkeys([*state["warnings"], *self.warnings, *more])
        return {"sandbox_id": self.work.sandbox_id, "warnings": list(warnings)}


@dataclass(frozen=True, slots=True)
class First:
    """A sandbox that a run begins in."""

    work: Workspace
    setup: CommandResult | None
    """How the set-up command ended, where one ran."""
    used: bool
    """It was there before: an earlier run may have worked in it."""


class Preparing:
    """Prepares a thread's sandbox once, and again where it was lost or is not what it should be.

    Args:
        manager: where sandboxes come from.
    """

    def __init__(self, manager: SandboxManager) -> None:
        self._manager = manager

    async def first(self, state: State, runtime: Runtime[Context], token: str) -> First:
        """Put the project into a sandbox and run the set-up command, unless an earlier visit has done it.

        Args:
            token: the same in each visit of one run; the sandbox bears it once it is prepared.

        Raises:
            InputError: the project cannot be had; no sandbox is left behind.
        """
        acquired, work = await self._acquired(state, runtime)
        if (await work.marker()).token == token:
            return First(work, None, used=True)
        try:
            if acquired.how == "connected" and _wants_internet(state):
                acquired, work = await self._moved(state, runtime, work)
            await self._fill(work, state)
        except (InputError, FileNotFoundError) as exc:
            await self.end(state, runtime, acquired.sandbox_id)
            raise InputError(NO_ARCHIVE) from exc
        setup = await self._set_up(acquired, work, state)
        if setup is None or setup.exit_code == 0:
            await work.mark(Marker(token))
        return First(work, setup, used=acquired.how not in {"created", "replaced"})

    async def ready(self, state: State, runtime: Runtime[Context]) -> Ready:
        """Return the prepared sandbox; one that was lost is made again, with the steps done so far."""
        acquired, work = await self._acquired(state, runtime)
        marker = await work.marker()
        warnings: list[str] = []
        anew: dict[str, Any] = {}
        if marker.token != state["prepared"]:
            if acquired.how == "connected":
                warnings.append(_fell_back(runtime, acquired))
            marker, anew = await self._prepare_again(acquired, work, state, runtime)
        elif marker.done < state["done"]:
            warnings.append(_fell_back(runtime, acquired))
        return Ready(acquired, work, await baseline_of(work, state), marker, warnings, anew)

    async def end(self, state: State, runtime: Runtime[Context], sandbox_id: str) -> None:
        """End a sandbox, however the policy keeps it otherwise."""
        policy = policy_of(state).model_copy(update={"keep": "run"})
        await self._manager.release(owner_of(runtime, NAME), sandbox_id, policy)

    async def _acquired(self, state: State, runtime: Runtime[Context]) -> tuple[Acquired, Workspace]:
        acquired = await self._manager.acquire(
            owner_of(runtime, NAME),
            state.get("sandbox_id", ""),
            policy_of(state),
            setup=bool(state["setup_command"]),
        )
        announce(runtime, acquired)
        return acquired, Workspace(box(acquired.handle), self._manager.secrets.redacted)

    async def _moved(
        self, state: State, runtime: Runtime[Context], work: Workspace
    ) -> tuple[Acquired, Workspace]:
        """Exchange a sandbox for one whose set-up command reaches the internet, which only a new one can."""
        archive = await work.archive(state["archive"]["sha256"]) if state["archive"] else b""
        await self.end(state, runtime, work.sandbox_id)
        acquired, work = await self._acquired({**state, "sandbox_id": ""}, runtime)
        if archive:
            await work.put_archive(archive)
        return acquired, work

    async def _prepare_again(
        self, acquired: Acquired, work: Workspace, state: State, runtime: Runtime[Context]
    ) -> tuple[Marker, dict[str, Any]]:
        try:
            await self._fill(work, state)
        except FileNotFoundError as exc:
            if acquired.how != "connected":
                await self.end(state, runtime, acquired.sandbox_id)
            raise InputError(ARCHIVE_LOST) from exc
        if state["archive"]:
            await Uploaded(await work.kept_tree()).keep(work)
        anew = {}
        if await self._set_up(acquired, work, state):
            anew = record.by_products_again(await baseline_of(work, state), await work.snapshot(), state)
            # What the set-up wrote outside the project is older than this, and no work of a step.
            anew["clock"] = await work.clock()
        marker = Marker(state["prepared"], state["done"])
        await work.mark(marker)
        return marker, anew

    async def _fill(self, work: Workspace, state: State) -> None:
        await work.clear()
        if state["archive"]:
            await work.check_archive(state["archive"]["sha256"])
            await work.unpack()
            await work.keep_copy()
        else:
            sent = Sent(state["project"])
            await sent.put_all(work)
            # A file that is not there would count as deleted in the patch.
            if missing := sorted(sent.tree.keys() - (await work.snapshot(sent.scope)).keys()):
                raise SandboxError(f"the sandbox did not take the project's file {missing[0]!r}")

    async def _set_up(self, acquired: Acquired, work: Workspace, state: State) -> CommandResult | None:
        """Run the set-up command, if there is one.

        After it the internet is cut, where the policy gave it for that alone.
        """
        if not state["setup_command"]:
            return None
        result = await set_up(work, state)
        await self._manager.setup_done(acquired, policy_of(state))
        return result


async def baseline_of(work: Workspace, state: State) -> Baseline:
    """Return the project as it was sent."""
    return await Uploaded.of(work, state["baseline"]) if state["archive"] else Sent(state["project"])


def _wants_internet(state: State) -> bool:
    return bool(state["setup_command"]) and policy_of(state).internet == "setup"


def _fell_back(runtime: Runtime[Context], acquired: Acquired) -> str:
    words = (
        f"Sandbox {acquired.sandbox_id} was not as this run had left it: it fell back to an older state, or "
        "was changed from outside. The project's files were put as they should be; what was installed or "
        "running beside them may be missing."
    )
    runtime.stream_writer(notice("rolled_back", acquired.sandbox_id, words))
    return words
