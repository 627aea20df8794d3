"""The nodes that make a plan and have it approved."""

import asyncio
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import Runtime

from agent.approvals.decisions import answered_by
from agent.context import Context
from agent.repair.approval import Approve, Edit, decided, question
from agent.repair.lasting import lasting, progress, seconds_left, steps_left
from agent.repair.limits import MAX_REJECTIONS
from agent.repair.nodes import Nodes, Update
from agent.repair.plan import Plan
from agent.repair.planner import MAX_ASKS, NoPlanError, propose
from agent.repair.preparing import Ready
from agent.repair.prompts import plan_request, rejection_story, story
from agent.repair.report import TestReport
from agent.repair.showing import texts_to_show
from agent.repair.state import RepairState
from agent.tools.budget import clipped

MAX_WHY_BYTES = 2_000
"""Of what was wrong with a plan, in the summary."""


class Planning(Nodes):
    """Plans, and asks a human."""

    @lasting
    async def plan(self, state: RepairState, runtime: Runtime[Context]) -> Update:
        """Ask the model for a plan."""
        await self.trusted(state)
        progress(runtime, state, "plan", "Planning the repair.")
        left_s, steps = seconds_left(state), steps_left(state)
        if left_s <= 0 or steps <= 0:
            return {"status": "budget"}
        model = self.model(runtime)
        ready = await self.preparing.ready(state, runtime)
        request = await self._request(state, ready, steps)
        try:
            async with asyncio.timeout(left_s) as limit:
                plan = await propose(model, request, lambda p: p.problems(state["protect"], steps))
        except TimeoutError:
            if not limit.expired():
                raise
            return ready.update(state) | {"status": "budget"}
        except NoPlanError as exc:
            why = clipped(str(exc), MAX_WHY_BYTES)
            words = f"The model gave no valid plan in {MAX_ASKS} tries. The last one: {why}"
            return ready.update(state) | {"status": "failed", "summary": words}
        said = f"Plan, try {state['iteration']} of {state['limits']['tries']}: {plan.as_markdown()}"
        return ready.update(state) | {
            **await self.consent.seal_plan(plan, state),
            "edited": False,
            "step": 0,
            "steps": [],
            "messages": [AIMessage(said)],
        }

    async def _request(self, state: RepairState, ready: Ready, steps: int) -> str:
        report = TestReport.from_state(state["tests_after"] or state["tests_before"])
        names, texts = await texts_to_show(ready.work, ready.baseline, state, report.output)
        return plan_request(
            project=texts,
            names=names,
            test_command=state["test_command"],
            report=report,
            iteration=state["iteration"],
            tries=state["limits"]["tries"],
            goal=state["goal"],
            previous=state["story"],
            feedback=[made["message"] for made in state["decisions"] if made.get("message")],
            max_steps=steps,
        )

    async def approve(self, state: RepairState, runtime: Runtime[Context]) -> Update:
        """Wait for a human, unless the policy asks for none; only a decision on this very plan counts."""
        await self.trusted(state)
        plan = await self.consent.plan(state)
        if plan is None:
            return {"plan": {}, "messages": [AIMessage("The plan was changed from outside: I make another.")]}
        made: dict[str, Any] = {"iteration": state["iteration"], "plan_hash": plan.hash()}
        if not await self.consent.asks(state, runtime):
            made |= {"type": "approve", "by": "policy"}
            return {"decisions": await self.consent.record(made, state, runtime)}
        value = question(plan, state["iteration"], state["rejections"])
        decision = decided(value, lambda edited: edited.problems(state["protect"], steps_left(state)))
        made |= {"type": decision.type, **answered_by(runtime)}
        if isinstance(decision, Approve):
            return {"decisions": await self.consent.record(made, state, runtime)}
        if isinstance(decision, Edit):
            return await self._edited(plan, decision.edited_action.args, made, state, runtime)
        words = decision.message.strip()
        rejections = state["rejections"] + 1
        update: Update = {
            "decisions": await self.consent.record(made | {"message": words}, state, runtime),
            "rejections": rejections,
            "story": story(state["story"], rejection_story(plan)),
            "messages": [_human(f"Plan turned down{f': {words}' if words else '.'}")],
        }
        stops = decision.stops or rejections >= MAX_REJECTIONS
        return update | ({"status": "rejected"} if stops else {})

    async def _edited(
        self, shown: Plan, plan: Plan, made: dict[str, Any], state: RepairState, runtime: Runtime[Context]
    ) -> Update:
        """Take the human's plan in place of the one that was shown."""
        changed = plan.hash() != shown.hash()
        return {
            **await self.consent.seal_plan(plan, state),
            "edited": changed,
            "decisions": await self.consent.record(made | {"plan_hash": plan.hash()}, state, runtime),
            "messages": [_human(f"Plan as edited: {plan.as_markdown()}")] if changed else [],
        }


def _human(words: str) -> HumanMessage:
    # Named, so that it is not taken for a wish with which a new run begins.
    return HumanMessage(words, name="decision")
