"""What the nodes of plan_execute share, and the first and the last of them.

Which follows which is decided in `agent.graphs.plan_execute`.
"""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from agent.context import Context
from agent.models import chat_model
from agent.repair import outcome, record
from agent.repair.baseline import Baseline, Sent, Uploaded
from agent.repair.consent import Consent
from agent.repair.lasting import NAME, lasting, progress, task_of
from agent.repair.preparing import First, Preparing
from agent.repair.request import checked, lacks_project
from agent.repair.state import RepairState, checked_state
from agent.repair.testing import policy_of, test
from agent.repair.verifying import Verifying
from agent.sandbox.manager import SandboxManager
from agent.sandbox.owners import owner_of
from agent.sandbox.provider import CommandResult
from agent.settings import Settings
from agent.tools.results import command_text

Update = dict[str, Any]
MAX_SETUP_OUTPUT_BYTES = 4_000

FRESH: Update = {
    "baseline": "", "clock": "", "spent_s": 0.0, "iteration": 1, "rejections": 0, "done": 0,
    "plan": {}, "plan_seal": "", "begun_seal": "", "edited": False, "step": 0, "steps": [],
    "changes": {}, "executable": {}, "left_out": {}, "by_products": [], "setup_changed": {},
    "tests_before": {}, "tests_after": None, "outcomes": {}, "story": "", "decisions": [],
    "changed_tests": [], "outside": [], "warnings": [], "status": None, "diff": "", "summary": "",
}  # fmt: skip
"""What a run begins with, whatever an earlier one of the thread left."""


NEEDS_PROJECT = (
    "I repair projects whose tests fail, and so far there is none in this thread. I need its files, with "
    "their tests, in one of two ways:\n\n"
    "- as `project` in the input of a run, a map of relative path to text such as "
    '`{"app.py": "…", "tests/test_app.py": "…"}`, beside it `test_command`, if the tests do not run with '
    "`python -m pytest -q`;\n"
    "- as an archive (tar or zip): `POST /uploads/%s` answers with the address to send it to. Then write to "
    "me again.\n\n"
    "`sandbox-agent repair FOLDER` does all of this for a folder."
)
"""The answer to words without a project; `%s` is the thread's id."""


class Nodes:
    """What every node needs.

    Args:
        settings: limits and the default model.
        manager: where the thread's sandbox comes from.
        consent: when a human is asked, and what was decided.
    """

    def __init__(self, settings: Settings, manager: SandboxManager, consent: Consent) -> None:
        self.settings = settings
        self.manager = manager
        self.preparing = Preparing(manager)
        self.verifying = Verifying(manager)
        self.consent = consent

    async def trusted(self, state: RepairState) -> None:
        """Check a state that clients can write, before a node works with it.

        Raises:
            InputError: it cannot be worked with, or the request is not the one that was prepared.
        """
        checked_state(state)
        await self.consent.check_request(state)

    def model(self, runtime: Runtime[Context]) -> BaseChatModel:
        """Return the run's chat model."""
        return chat_model(self.settings, runtime.context.model if runtime.context else None)


def setup_failed(state: RepairState, result: CommandResult) -> Update:
    """Return what belongs into state where the set-up command failed: the run ends."""
    words = command_text(result, policy_of(state).command_timeout_s, MAX_SETUP_OUTPUT_BYTES)
    return {"status": "setup_failed", "summary": words, "tests_after": None}


class FirstAndLast(Nodes):
    """The nodes that prepare the project and that say what came of it."""

    @lasting
    async def bootstrap(self, state: RepairState, runtime: Runtime[Context]) -> Update:
        """Put the project into a sandbox, prepare it, and record how its tests fail."""
        if lacks_project(state):
            return self._asks_for_a_project(runtime)
        context = runtime.context or Context()
        fresh: Update = FRESH | checked(state)
        # A model that cannot be built is found out before there is a sandbox to leave behind.
        self.model(runtime)
        fresh |= {
            "sandbox_policy": self.manager.policy.varied(context).model_dump(),
            "prepared": task_of(runtime),
        }
        fresh |= await self.consent.begin(runtime, fresh["prepared"])
        state = {**state, **fresh}  # type: ignore[typeddict-item]
        progress(runtime, state, "bootstrap", "Preparing the project in a sandbox.")
        self.manager.begin(owner_of(runtime, NAME))
        first = await self.preparing.first(state, runtime, fresh["prepared"])
        fresh["sandbox_id"] = first.work.sandbox_id
        if first.setup and first.setup.exit_code != 0:
            return fresh | setup_failed(state, first.setup)
        fresh |= await self._measured(state, runtime, first)
        return fresh | await self.consent.seal_request({**state, **fresh})

    def _asks_for_a_project(self, runtime: Runtime[Context]) -> Update:
        """Answer in words, as a chat front end shows them, rather than with an error that it may not."""
        words = NEEDS_PROJECT % owner_of(runtime, NAME).thread
        ending: Update = {"status": "needs_project", "summary": words, "diff": ""}
        return ending | {"messages": [AIMessage(words)]}

    async def _measured(self, state: RepairState, runtime: Runtime[Context], first: First) -> Update:
        """Record what the project held and how its tests fail."""
        work = first.work
        update: Update = {}
        baseline: Baseline = Sent(state["project"])
        if state["archive"]:
            baseline = Uploaded(await work.kept_tree())
            update["baseline"] = await baseline.keep(work)
        report = await test(work, state)
        # With what git ignores by now: a step may change the rules.
        update |= record.by_products(baseline, await work.snapshot(baseline.scope))
        update["clock"] = await work.clock()
        if report.green and first.used:
            # What an earlier run of the thread left in the sandbox may be all that makes them pass.
            verified = await self.verifying.verified({**state, **update}, runtime, work, baseline)
            if verified.setup:
                return update | setup_failed(state, verified.setup)
            report = verified.report or report
        runtime.stream_writer({"type": "tests", "phase": "baseline", "report": report.as_state()})
        update["tests_before"] = report.as_state()
        if report.green:
            update |= {"status": "already_green", "tests_after": report.as_state()}
        elif report.nothing_to_run:
            update["status"] = "nothing_tested"
        return update

    async def summarize(self, state: RepairState, runtime: Runtime[Context]) -> Update:
        """End the sandbox and say what came of it."""
        if state.get("status") == "needs_project" and not state.get("sandbox_id"):
            return {}  # said, and nothing to end
        checked_state(state)
        words = outcome.summary(state)
        progress(runtime, state, "summarize", words.splitlines()[0])
        owner, kept = owner_of(runtime, NAME), ""
        if sandbox_id := state.get("sandbox_id", ""):
            kept = await self.manager.release(owner, sandbox_id, policy_of(state))
        diff = state["diff"]
        ending: Update = {"summary": words, "sandbox_id": Overwrite(kept)}
        if owner.threadless:
            # Nobody follows a conversation there: a program reads the result, which holds the diff once.
            return ending | {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), AIMessage(words)]}
        return ending | {"messages": [AIMessage(words + (f"\n\n```diff\n{diff}```" if diff else ""))]}
