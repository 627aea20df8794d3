"""The verdict: the tests run on the project as it was sent, with the patch, where no agent worked.

An agent can leave behind what no patch holds: compiled files, programs that run on, profiles, packages. So
the tests run in a sandbox made for them, from what state holds, and it is ended afterwards. The set-up
command runs there before the patch is applied: what the agent wrote does not run while the internet is open
for the set-up alone.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.runtime import Runtime

from agent.context import Context
from agent.errors import (
    InputError,
    SandboxError,
    SandboxGoneError,
    SandboxQuotaError,
    SandboxUnreachableError,
)
from agent.repair import outcome, record
from agent.repair.baseline import Baseline, Sent
from agent.repair.lasting import NAME
from agent.repair.report import TestReport
from agent.repair.testing import policy_of, set_up, test
from agent.repair.tree import Tree
from agent.repair.workspace import Workspace
from agent.sandbox.live import box
from agent.sandbox.manager import Acquired, SandboxManager
from agent.sandbox.owners import owner_of
from agent.sandbox.provider import CommandResult

State = Mapping[str, Any]

MAX_SANDBOXES = 2
"""For one verdict, where one after the other is lost."""
PAUSE_S = 1.0
"""Between them."""

ARCHIVE_CHANGED = (
    "the uploaded archive was changed or deleted in the sandbox that the steps were carried out in: the "
    "patch cannot be verified on it. What was done so far is in the state's `diff`; upload the archive again "
    "and start anew."
)
NOT_VERIFIED = (
    "the patch, which is in the state's `diff`, could not be verified; go on with the run when the sandbox "
    "service works again."
)
ONLY_AFTER_SETUP = "The tests pass only after the set-up command has run again, on the changed files."


@dataclass(frozen=True, slots=True)
class Verified:
    """What the tests said of a patch."""

    report: TestReport | None
    """None where the set-up command failed, so that they were not run."""
    setup: CommandResult | None = None
    """How the set-up command failed."""
    warnings: tuple[str, ...] = ()


class Verifying:
    """Runs tests in sandboxes of their own.

    Args:
        manager: where they come from.
        pause_s: how long to wait, in seconds, before another is made in place of one that was lost.
    """

    def __init__(self, manager: SandboxManager, pause_s: float = PAUSE_S) -> None:
        self._manager = manager
        self._pause_s = pause_s

    async def verified(
        self, state: State, runtime: Runtime[Context], work: Workspace, baseline: Baseline
    ) -> Verified:
        """Run the tests on the project with the changes that state holds.

        Args:
            state: `changes` and `executable` are the patch.
            work: the thread's own sandbox. Of it an uploaded archive is taken, if its digest is the one in
                state; it may be paused meanwhile, where the account has no room for two.
            baseline: the project as it was sent.

        Raises:
            InputError: the archive was tampered with.
            SandboxError: no sandbox could be had, or two were lost one after the other.
        """
        archive = await _archive(work, state)
        for left in reversed(range(MAX_SANDBOXES)):
            try:
                return await self._once(state, runtime, work.sandbox_id, baseline, archive)
            except SandboxQuotaError as exc:
                raise SandboxQuotaError(f"{NOT_VERIFIED} It needs a sandbox of its own: {exc}") from exc
            except (SandboxGoneError, SandboxUnreachableError) as exc:
                # It holds nothing that is not elsewhere too: another one serves as well.
                lost = exc
            if left:
                await asyncio.sleep(self._pause_s)
        raise SandboxError(f"{NOT_VERIFIED} {MAX_SANDBOXES} sandboxes were lost; the last: {lost}") from lost

    async def _once(
        self, state: State, runtime: Runtime[Context], beside: str, baseline: Baseline, archive: bytes
    ) -> Verified:
        owner, policy, has_setup = owner_of(runtime, NAME), policy_of(state), bool(state["setup_command"])
        async with self._manager.fresh(owner, beside, policy, setup=has_setup) as made:
            work = Workspace(box(made.handle), self._manager.secrets.redacted)
            await _fill(work, state, archive)
            if has_setup and (failed := await self._set_up(made, work, state)):
                return Verified(None, failed)
            files = await record.patch(work, baseline, state)
            report = await tested(work, baseline, state, files)
            if report.green or not has_setup:
                return Verified(report)
            # The set-up may have built something of files that the patch changes.
            if (await set_up(work, state)).exit_code != 0:
                return Verified(report)
            # Measured against the files before the first run: it may have changed tests for the second.
            again = await tested(work, baseline, state, files)
            return Verified(again, warnings=(ONLY_AFTER_SETUP,) if again.green else ())

    async def _set_up(self, made: Acquired, work: Workspace, state: State) -> CommandResult | None:
        """Run the set-up command and cut the internet it had; return how it failed, if it did."""
        result = await set_up(work, state)
        await self._manager.setup_done(made, policy_of(state))
        return result if result.exit_code != 0 else None


async def _archive(work: Workspace, state: State) -> bytes:
    if not state["archive"]:
        return b""
    try:
        return await work.archive(state["archive"]["sha256"])
    except OSError as exc:
        raise InputError(ARCHIVE_CHANGED) from exc


async def _fill(work: Workspace, state: State, archive: bytes) -> None:
    if archive:
        await work.put_archive(archive)
        await work.unpack()
    else:
        await Sent(state["project"]).put_all(work, anew=True)


async def tested(work: Workspace, baseline: Baseline, state: State, was: Tree) -> TestReport:
    """Run the tests; red if protected files are not what they were before."""
    report = await test(work, state)
    now = await work.snapshot(baseline.scope)
    touched = [path for path in baseline.tree if now.get(path) != was.get(path)]
    return outcome.unless_touched(report, touched, state["protect"])
