"""The nodes that carry a plan out and verify it."""

import asyncio

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from agent.context import Context
from agent.errors import InputError
from agent.repair import outcome, record
from agent.repair.consent import NOT_APPROVED, Consent
from agent.repair.diff import news
from agent.repair.executor import Executor
from agent.repair.lasting import lasting, progress, seconds_left, steps_left, task_of
from agent.repair.nodes import Nodes, Update, setup_failed
from agent.repair.plan import Plan
from agent.repair.preparing import Ready
from agent.repair.prompts import attempt_story, story
from agent.repair.report import TestReport
from agent.repair.state import RepairState, StepReport
from agent.repair.tree import differing, matches, printable
from agent.repair.workspace import Marker
from agent.sandbox.manager import SandboxManager
from agent.settings import Settings
from agent.tools.budget import clipped

MAX_REPORT_BYTES = 4_000
MAX_STEP_DIFF_BYTES = 10_000
MAX_NAMED = 200
WITHOUT_GIT = (
    "The sandbox has no git: what the project's .gitignore names was not told from its files, and may be in "
    "the patch."
)


class Working(Nodes):
    """Carries out, and verifies."""

    def __init__(self, settings: Settings, manager: SandboxManager, consent: Consent) -> None:
        super().__init__(settings, manager, consent)
        self._executor = Executor(settings, manager.secrets)

    @lasting
    async def execute(self, state: RepairState, runtime: Runtime[Context]) -> Update:
        """Carry out one step of the plan and record what it changed.

        A step that a crashed visit had finished is not repeated; one that was cut short starts anew, from the
        files as the step before it left them.
        """
        await self.trusted(state)
        plan, index = await self.consent.approved(state, runtime), state["step"]
        if plan is None:
            return {"decisions": []}  # none that counts: the plan is asked about next
        if begun := await self.consent.begin_plan(state, runtime):
            return begun
        if index >= len(plan.steps):
            return {}  # sent here by a client: the plan is carried out, and is verified next
        progress(runtime, state, "execute", plan.steps[index].change)
        ready = await self.preparing.ready(state, runtime)
        again = await self._prepared_again(ready, state)
        if again and ready.acquired.how != "connected":
            # On record before the step begins: a visit that is cut short could not tell it later.
            return {**ready.update(state), **again}
        state = {**state, **again}  # type: ignore[typeddict-item]
        told = ready.marker.report
        if ready.marker.task != task_of(runtime):
            await record.settle(ready.work, ready.baseline, state)
            told = await self._carried_out(plan, index, state, ready, runtime)
            await ready.work.mark(Marker(state["prepared"], state["done"] + 1, task_of(runtime), told))
        changed = await record.recorded(ready.work, ready.baseline, state)
        outside = await ready.work.outside(state["clock"])
        step: StepReport = {
            "file": plan.steps[index].file,
            "report": told,
            "diff": clipped(news(state["diff"], changed["diff"]), MAX_STEP_DIFF_BYTES),
        }
        return {
            **changed,
            **again,
            **ready.update(state),
            "step": index + 1,
            "done": state["done"] + 1,
            "steps": [*state["steps"], step],
            "outside": sorted({*state["outside"], *outside})[:MAX_NAMED],
            "messages": [AIMessage(f"Step {index + 1} of {len(plan.steps)}: {told}")],
        }

    async def _prepared_again(self, ready: Ready, state: RepairState) -> Update:
        """Return what belongs into state of a sandbox that was prepared again; empty where it was not."""
        if not ready.anew:
            return {}
        return {**ready.anew, **await self.consent.seal_request({**state, **ready.anew})}

    async def _carried_out(
        self, plan: Plan, index: int, state: RepairState, ready: Ready, runtime: Runtime[Context]
    ) -> str:
        try:
            async with asyncio.timeout(seconds_left(state)) as limit:
                told = await self._executor.carry_out(plan, index, state, ready.acquired.handle, runtime)
        except TimeoutError:
            if not limit.expired():
                raise
            told = "Cut short: the run's working time is used up."
        return clipped(told, MAX_REPORT_BYTES)

    @lasting
    async def verify(self, state: RepairState, runtime: Runtime[Context]) -> Update:
        """Run the tests on the patch in a sandbox of its own, and let the exit code decide.

        Protected files are put back in the thread's sandbox too: the next plan starts from there.
        """
        await self.trusted(state)
        if await self.consent.approved(state, runtime) is None:
            raise InputError(NOT_APPROVED)
        progress(runtime, state, "verify", "Running the tests in a new sandbox, on the patch alone.")
        ready = await self.preparing.ready(state, runtime)
        again = await self._prepared_again(ready, state)
        state = {**state, **again}  # type: ignore[typeddict-item]
        await record.settle(ready.work, ready.baseline, state)
        guarded = await _put_back(ready, state)
        kept = await record.recorded(ready.work, ready.baseline, state, protect=state["protect"])
        scope = ready.baseline.scope
        seen = await ready.work.look(scope)
        besides = await ready.work.left_behind(state["clock"], scope, seen)
        kept["left_out"] = dict([*kept["left_out"].items(), *besides.items()][:MAX_NAMED])
        patch: RepairState = {**state, **kept}  # type: ignore[typeddict-item]
        verified = await self.verifying.verified(patch, runtime, ready.work, ready.baseline)
        changed_tests = sorted({*state["changed_tests"], *guarded})[:MAX_NAMED]
        if verified.report is None:
            assert verified.setup is not None
            ended = setup_failed(state, verified.setup)
            return {**kept, **again, **ready.update(state), "changed_tests": changed_tests, **ended}
        report = verified.report
        runtime.stream_writer({"type": "tests", "phase": "verify", "report": report.as_state()})
        files = record.digest(ready.baseline, patch)
        odd = [*outcome.oddities(patch, report, files), *verified.warnings]
        if seen.without_git:
            odd.append(WITHOUT_GIT)
        if besides and not report.green:
            odd.append(outcome.missing(state, [*besides]))
        return {
            **kept,
            **again,
            **ready.update(state, odd),
            "tests_after": report.as_state(),
            "changed_tests": changed_tests,
            "outcomes": {**state["outcomes"], files: outcome.failures(report)},
            **_verdict(patch, report, files),
        }


async def _put_back(ready: Ready, state: RepairState) -> list[str]:
    """Put protected files back and delete those that were added; return which they were."""
    was = ready.baseline.tree
    now = record.shown(ready.baseline, (await ready.work.look(ready.baseline.scope)).tree, state)
    changed = [p for p in differing(was, now) if matches(p, state["protect"])]
    await ready.work.remove([path for path in changed if path not in was])
    await ready.baseline.put_back(ready.work, [path for path in changed if path in was])
    await ready.work.drop_caches()
    return [printable(path) for path in changed]


def _verdict(state: RepairState, report: TestReport, files: str) -> Update:
    if report.green:
        return {"status": "passed"}
    if state["iteration"] >= state["limits"]["tries"]:
        return {"status": "failed"}
    if state["outcomes"].get(files) == outcome.failures(report):
        return {"status": "no_progress"}
    if steps_left(state) <= 0 or seconds_left(state) <= 0:
        return {"status": "budget"}
    plan = Plan.model_validate(state["plan"])
    not_in_it = [*state["left_out"], *state["outside"]]
    told = attempt_story(plan, state["steps"], report.told(), not_in_it, edited=state["edited"])
    return {"iteration": state["iteration"] + 1, "story": story(state["story"], told)}
