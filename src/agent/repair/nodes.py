"""The nodes of plan_execute; which follows which is decided in `agent.graphs.plan_execute`."""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from agent.context import Context
from agent.errors import SandboxGoneError
from agent.models import chat_model
from agent.repair import project as tree
from agent.repair.approval import Approve, asked, question
from agent.repair.diff import unified_diff
from agent.repair.executor import Executor
from agent.repair.plan import Plan
from agent.repair.planner import propose
from agent.repair.prompts import attempt_story, plan_request
from agent.repair.report import TestReport
from agent.repair.state import DEFAULT_TEST_COMMAND, MAX_TRIES, RepairState
from agent.sandbox.live import box
from agent.sandbox.manager import Acquired, SandboxManager
from agent.sandbox.notices import announce
from agent.sandbox.owners import owner_of
from agent.sandbox.policy import SandboxPolicy
from agent.sandbox.provider import Box, CommandResult
from agent.settings import Settings
from agent.tools.results import command_text

Update = dict[str, Any]
NAME = "plan_execute"


Node = TypeVar("Node", bound=Callable[..., Coroutine[Any, Any, Update]])


def lasting(body: Node) -> Node:
    """Let a node outlast the loss of its sandbox.

    A node whose sandbox turns out to be gone starts again in a new one, which is prepared from state; the
    manager ends this after two creations in a run.
    """

    @functools.wraps(body)
    async def node(self: "RepairNodes", state: RepairState, runtime: Runtime[Context]) -> Update:
        while True:
            try:
                update = await body(self, state, runtime)
            except SandboxGoneError:
                continue
            if made := update.get("sandbox_id"):
                self._manager.recorded(owner_of(runtime, NAME), made)
            return update

    return cast(Node, node)


class RepairNodes:
    """One method a node; each returns the state's changes.

    Args:
        settings: limits and the default model.
        manager: where the thread's sandbox comes from.
    """

    def __init__(self, settings: Settings, manager: SandboxManager) -> None:
        self._settings = settings
        self._manager = manager
        self._executor = Executor(settings)

    @lasting
    async def bootstrap(self, state: RepairState, runtime: Runtime[Context]) -> Update:
        """Put the project into a sandbox, prepare it, and record how its tests fail."""
        tree.checked(state.get("project"))
        tree.checked_words(**{name: state.get(name) for name in ("test_command", "setup_command", "goal")})
        # A model that cannot be built is found out before there is a sandbox to leave behind.
        self._model(runtime)
        fresh: Update = {
            "test_command": state.get("test_command") or DEFAULT_TEST_COMMAND,
            "sandbox_policy": self._manager.policy.varied(runtime.context).model_dump(),
            "iteration": 1,
            "plan": {},
            "step": 0,
            "steps": [],
            "changes": {},
            "story": "",
            "decisions": [],
            "changed_tests": [],
            "status": None,
            "tests_after": None,
            "diff": "",
            "summary": "",
        }
        state = {**state, **fresh}  # type: ignore[typeddict-item]
        _progress(runtime, state, "bootstrap", "Preparing the project in a sandbox.")
        self._manager.begin(owner_of(runtime, NAME))
        acquired, work = await self._acquired(state, runtime)
        fresh["sandbox_id"] = acquired.sandbox_id
        setup = await self._prepare(acquired, work, state)
        if setup and setup.exit_code != 0:
            words = command_text(setup, _policy(state).command_timeout_s, 4_000)
            return {**fresh, "status": "setup_failed", "summary": f"The set-up command failed.\n{words}"}
        report = await self._test(work, state)
        runtime.stream_writer({"type": "tests", "phase": "baseline", "report": report.as_state()})
        by_products = sorted((await tree.download(work)).keys() - state["project"].keys())
        fresh |= {"tests_before": report.as_state(), "by_products": by_products}
        if report.green:
            fresh |= {"status": "already_green", "tests_after": report.as_state()}
        return fresh

    async def plan(self, state: RepairState, runtime: Runtime[Context]) -> Update:
        """Ask the model for a plan."""
        _progress(runtime, state, "plan", "Planning the repair.")
        model = self._model(runtime)
        request = plan_request(
            project=tree.patched(state["project"], state["changes"]),
            test_command=state["test_command"],
            report=TestReport.from_state(state.get("tests_after") or state["tests_before"]),
            iteration=state["iteration"],
            tries=MAX_TRIES,
            goal=state.get("goal", ""),
            previous=state["story"],
        )
        plan = await propose(model, request)
        if plan is None:
            return {"status": "failed", "summary": "The model gave no valid plan."}
        said = AIMessage(f"Plan, try {state['iteration']} of {MAX_TRIES}: {plan.as_markdown()}")
        return {"plan": plan.model_dump(), "step": 0, "steps": [], "messages": [said]}

    async def approve(self, state: RepairState, runtime: Runtime[Context]) -> Update:
        """Wait for a human; only an explicit approval of this very plan approves it."""
        plan = Plan.model_validate(state["plan"])
        value = question(plan, state["iteration"])
        answer = asked(value)
        while answer.plan_hash not in {None, plan.hash()}:
            answer = asked(value | {"notice": "That answer was for another plan; this is the current one."})
        decision = answer.decisions[0]
        decisions = [*state["decisions"], decision.model_dump() | {"iteration": state["iteration"]}]
        if isinstance(decision, Approve):
            return {"decisions": decisions}
        return {"decisions": decisions, "status": "rejected"}

    @lasting
    async def execute(self, state: RepairState, runtime: Runtime[Context]) -> Update:
        """Carry out one step of the plan and record what it changed."""
        plan = Plan.model_validate(state["plan"])
        index = state["step"]
        _progress(runtime, state, "execute", plan.steps[index].change)
        acquired, work = await self._prepared(state, runtime)
        told = await self._executor.carry_out(plan, index, state, acquired.handle, runtime)
        return {
            "sandbox_id": acquired.sandbox_id,
            "step": index + 1,
            "steps": [*state["steps"], {"file": plan.steps[index].file, "report": told}],
            "changes": await self._changes(work, state),
            "messages": [AIMessage(f"Step {index + 1} of {len(plan.steps)}: {told}")],
        }

    @lasting
    async def verify(self, state: RepairState, runtime: Runtime[Context]) -> Update:
        """Restore the tests, run them, and let the exit code decide."""
        _progress(runtime, state, "verify", "Running the tests.")
        acquired, work = await self._prepared(state, runtime)
        guarded = tree.protected(state["project"])
        added = [path for path in state["changes"] if tree.is_test(path) and path not in guarded]
        await tree.restore(work, guarded, remove=added)
        changed = sorted(path for path in state["changes"] if tree.is_test(path))
        report = await self._test(work, state)
        runtime.stream_writer({"type": "tests", "phase": "verify", "report": report.as_state()})
        update: Update = {
            "sandbox_id": acquired.sandbox_id,
            "tests_after": report.as_state(),
            "changes": {path: text for path, text in state["changes"].items() if path not in changed},
            "changed_tests": sorted({*state["changed_tests"], *changed}),
        }
        if report.green:
            return update | {"status": "passed"}
        if state["iteration"] == MAX_TRIES:
            return update | {"status": "failed"}
        story = attempt_story(Plan.model_validate(state["plan"]), state["steps"])
        return update | {"iteration": state["iteration"] + 1, "story": f"{state['story']}\n{story}".strip()}

    async def summarize(self, state: RepairState, runtime: Runtime[Context]) -> Update:
        """End the sandbox and say what came of it."""
        diff = unified_diff(state["project"], tree.patched(state["project"], state["changes"]))
        summary = state.get("summary") or _summary(state)
        _progress(runtime, state, "summarize", summary.splitlines()[0])
        kept = ""
        if sandbox_id := state.get("sandbox_id", ""):
            kept = await self._manager.release(owner_of(runtime, NAME), sandbox_id, _policy(state))
        return {
            "diff": diff,
            "summary": summary,
            "sandbox_id": Overwrite(kept),
            "messages": [AIMessage(summary + (f"\n\n```diff\n{diff}```" if diff else ""))],
        }

    def _model(self, runtime: Runtime[Context]) -> BaseChatModel:
        return chat_model(self._settings, runtime.context.model if runtime.context else None)

    async def _acquired(self, state: RepairState, runtime: Runtime[Context]) -> tuple[Acquired, Box]:
        acquired = await self._manager.acquire(
            owner_of(runtime, NAME),
            state.get("sandbox_id", ""),
            _policy(state),
            setup=bool(state.get("setup_command")),
        )
        announce(runtime, acquired)
        return acquired, box(acquired.handle)

    async def _prepare(self, acquired: Acquired, work: Box, state: RepairState) -> CommandResult | None:
        """Upload the project as it is by now and run the set-up command, if there is one.

        After the set-up command the internet is cut, where the policy gave it for that alone.
        """
        await tree.upload(work, tree.patched(state["project"], state["changes"]))
        command = state.get("setup_command")
        if not command:
            return None
        result = await self._run(work, command, state)
        await self._manager.setup_done(acquired, _policy(state))
        return result

    async def _prepared(self, state: RepairState, runtime: Runtime[Context]) -> tuple[Acquired, Box]:
        """Return the prepared sandbox; one that was lost is made again with the steps done so far."""
        acquired, work = await self._acquired(state, runtime)
        if acquired.how in {"created", "replaced"}:
            await self._prepare(acquired, work, state)
        return acquired, work

    async def _changes(self, work: Box, state: RepairState) -> dict[str, str | None]:
        now = await tree.download(work)
        by_products = set(state["by_products"])
        return tree.changes(state["project"], {p: t for p, t in now.items() if p not in by_products})

    async def _test(self, work: Box, state: RepairState) -> TestReport:
        return TestReport.of(await self._run(work, state["test_command"], state))

    async def _run(self, work: Box, command: str, state: RepairState) -> CommandResult:
        limit_s = _policy(state).command_timeout_s
        return await work.run_command(command, timeout_s=limit_s, cwd=tree.ROOT)


def _policy(state: RepairState) -> SandboxPolicy:
    return SandboxPolicy.model_validate(state["sandbox_policy"])


def _progress(runtime: Runtime[Context], state: RepairState, phase: str, message: str) -> None:
    steps = len(state.get("plan", {}).get("steps", ()))
    runtime.stream_writer(
        {
            "type": "progress",
            "phase": phase,
            "message": message,
            "iteration": state.get("iteration", 1),
            "step": state["step"] + 1 if phase == "execute" else None,
            "steps": steps or None,
        }
    )


_ENDINGS = {
    "passed": "The tests pass.",
    "already_green": "The tests pass already; there was nothing to repair.",
    "failed": f"The tests still fail after {MAX_TRIES} tries.",
    "rejected": "The plan was rejected; nothing was changed.",
}


def _summary(state: RepairState) -> str:
    status = state.get("status") or "failed"
    lines = [_ENDINGS.get(status, status)]
    if status == "rejected" and (words := state["decisions"][-1].get("message")):
        lines.append(f"The human said: {words}")
    if status == "rejected" and state["changes"]:
        lines[0] = "The plan was rejected; the changes of earlier tries are in the diff."
    if state["changed_tests"]:
        lines.append("Changes to these tests were undone: " + ", ".join(state["changed_tests"]))
    return "\n".join(lines)
