"""Consent to plans: when a human is asked, what was decided, and whether a client made it up.

The rule a run began with, the plan and each decision stand in state, which every client of the thread can
write. So all are sealed, and checked where they are used: a rule without its seal asks for each plan; a plan
without one is not asked about, since an answer to the question before would count for it; and a plan without
the seal of a decision on exactly this plan, for exactly this request, is not carried out.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime

from agent.approvals.seals import Seals
from agent.context import Context
from agent.errors import InputError
from agent.repair.lasting import NAME
from agent.repair.limits import PlanApproval, strictest
from agent.repair.plan import Plan
from agent.sandbox.owners import owner_of

State = Mapping[str, Any]

_RULE, _PLAN, _DECISION = "plan approval", "plan", "decision on a plan"
_AGREED = (
    "project", "archive", "baseline", "test_command", "setup_command", "workdir", "protect", "limits",
    "sandbox_policy", "by_products", "setup_changed", "clock",
)  # fmt: skip
"""What a plan is a plan for: a decision does not count for another project, command or rule."""

NOT_APPROVED = (
    "this plan was not approved: state holds no decision on it that this graph made, or what it was decided "
    "for was changed since. Nothing was carried out now. To have it asked again send the thread "
    'command={"goto": "approve"}; a new input begins a new repair. Where several processes serve one '
    "deployment, ARTIFACT_KEY must be the same in all."
)


NOT_OURS = (
    "the plan in the thread's state was changed from outside, or what it was made for was. Nobody was asked "
    "about it and nothing was carried out. To have another plan made send the thread "
    'command={"goto": "plan"}; a new input begins a new repair.'
)


class Consent:
    """The rule of when to ask, and the record of what was decided.

    Args:
        seals: of the deployment.
        least: how often every run asks at least, whatever its context and its state say.
    """

    def __init__(self, seals: Seals, least: PlanApproval) -> None:
        self._seals = seals
        self._least = least

    async def begin(self, runtime: Runtime[Context], prepared: str) -> dict[str, str]:
        """Return what state holds of the run's rule.

        Args:
            runtime: its context may name a rule.
            prepared: names the run among those of the thread.

        Raises:
            InputError: the context asks for less than the deployment does.
        """
        wanted: PlanApproval = (runtime.context and runtime.context.plan_approval) or "each"
        if strictest(wanted, self._least) != wanted:
            raise InputError(
                f"context: plan_approval={wanted!r} asks less than this deployment does "
                f"(PLAN_APPROVAL={self._least})"
            )
        seal = await self._seals.seal(_RULE, owner_of(runtime, NAME).thread, [prepared, wanted])
        return {"plan_approval": wanted, "plan_approval_seal": seal}

    async def seal_plan(self, plan: Plan, state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        """Return what state holds of a plan that a human may be asked about."""
        seal = await self._seals.seal(_PLAN, owner_of(runtime, NAME).thread, _plan_facts(plan, state))
        return {"plan": plan.model_dump(), "plan_seal": seal}

    async def shown(self, state: State, runtime: Runtime[Context]) -> Plan:
        """Return the current plan, for a human to decide on.

        Raises:
            InputError: a client wrote it.
        """
        plan = Plan.model_validate(state["plan"])
        seal, thread = state.get("plan_seal"), owner_of(runtime, NAME).thread
        if not await self._seals.holds(seal, _PLAN, thread, _plan_facts(plan, state)):
            raise InputError(NOT_OURS)
        return plan

    async def asks(self, state: State, runtime: Runtime[Context]) -> bool:
        """Whether a human decides on the current plan."""
        rule: PlanApproval = state["plan_approval"]
        seal, facts = state.get("plan_approval_seal"), [state["prepared"], rule]
        if not await self._seals.holds(seal, _RULE, owner_of(runtime, NAME).thread, facts):
            rule = "each"
        rule = strictest(rule, self._least)
        before = [
            made
            for made in state["decisions"]
            if made["type"] in {"approve", "edit"} and await self._genuine(made, state, runtime)
        ]
        return rule == "each" or (rule == "first" and not before)

    async def record(
        self, made: dict[str, Any], state: State, runtime: Runtime[Context]
    ) -> list[dict[str, Any]]:
        """Return the decisions with one more."""
        seal = await self._seals.seal(_DECISION, owner_of(runtime, NAME).thread, _facts(made, state))
        return [*state["decisions"], made | {"seal": seal}]

    async def approved(self, state: State, runtime: Runtime[Context]) -> Plan:
        """Return the current plan.

        Raises:
            InputError: no decision to carry out this plan was made; nothing is carried out.
        """
        plan = Plan.model_validate(state["plan"])
        made = state["decisions"][-1] if state["decisions"] else {}
        same = (made.get("plan_hash"), made.get("iteration")) == (plan.hash(), state["iteration"])
        if made.get("type") in {"approve", "edit"} and same and await self._genuine(made, state, runtime):
            return plan
        raise InputError(NOT_APPROVED)

    async def _genuine(self, made: Mapping[str, Any], state: State, runtime: Runtime[Context]) -> bool:
        thread = owner_of(runtime, NAME).thread
        return await self._seals.holds(made.get("seal"), _DECISION, thread, _facts(made, state))


def _plan_facts(plan: Plan, state: State) -> list[Any]:
    return [state["prepared"], state["iteration"], state["rejections"], plan.hash(), _agreed(state)]


def _facts(made: Mapping[str, Any], state: State) -> list[Any]:
    said = {key: value for key, value in made.items() if key != "seal"}
    return [state["prepared"], said, _agreed(state)]


def _agreed(state: State) -> str:
    agreed = json.dumps([state.get(key) for key in _AGREED], sort_keys=True, default=repr)
    return hashlib.sha256(agreed.encode()).hexdigest()
