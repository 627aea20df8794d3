"""Consent to plans: when a human is asked, what was decided, and whether a client made it up.

The rule a run began with, the plan and each decision stand in state, which every client of the thread can
write. So all are sealed, and checked where they are used. A rule without its seal asks for each plan. A plan
without one is made anew rather than asked about: the answer to an earlier question would count for it. A plan
without a sealed decision to carry it out is asked about again. And a request that was changed since it was
prepared, which no question shows, ends the run.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime

from agent.approvals.answers import ON_A_THREAD
from agent.approvals.seals import Seals
from agent.context import Context
from agent.errors import InputError
from agent.repair.lasting import NAME
from agent.repair.limits import PlanApproval, strictest
from agent.repair.plan import Plan
from agent.sandbox.owners import keeps_checkpoints, owner_of

State = Mapping[str, Any]

_RULE, _REQUEST, _PLAN = "plan approval", "request", "plan"
_DECISION, _BEGUN = "decision on a plan", "plan begun"
_ANY_THREAD = ""
"""A copied thread has the request and the plan of the first; the consent to it is the first's alone."""
_AGREED = (
    "project", "archive", "baseline", "test_command", "setup_command", "workdir", "protect", "limits",
    "sandbox_policy", "by_products", "setup_changed", "clock",
)  # fmt: skip
"""What a plan is a plan for, from its preparation on."""
APPROVED = frozenset({"approve", "edit"})
"""The decisions that carry a plan out."""

CHANGED = (
    "what this repair was begun for was changed in the thread's state from outside: its project, commands, "
    "protected files, limits or sandbox policy. Nothing was carried out; a new input begins a new repair. "
    "Where several processes serve one deployment, ARTIFACT_KEY must be the same in all."
)
NOT_APPROVED = (
    "what is to be verified was not approved: state holds no decision on the plan that this graph made. "
    "A new input begins a new repair."
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
            InputError: the context asks for less than the deployment does, or asks a human in a run that
                nobody can answer.
        """
        wanted: PlanApproval = (runtime.context and runtime.context.plan_approval) or "each"
        if strictest(wanted, self._least) != wanted:
            raise InputError(
                f"context: plan_approval={wanted!r} asks less than this deployment does "
                f"(PLAN_APPROVAL={self._least})"
            )
        if wanted != "never" and not keeps_checkpoints():
            raise InputError(self._unattended())
        seal = await self._seals.seal(_RULE, owner_of(runtime, NAME).thread, [prepared, wanted])
        return {"plan_approval": wanted, "plan_approval_seal": seal}

    def _unattended(self) -> str:
        unasked = (
            "With `plan_approval` set to never in the context of the run, or of the assistant that is "
            "called, it asks nobody"
            if self._least == "never"
            else f"This deployment has plans approved (PLAN_APPROVAL={self._least})"
        )
        return (
            "nobody could approve a plan in a run without a thread, so nothing was started. "
            f"{unasked}. Or {ON_A_THREAD}"
        )

    async def seal_plan(self, plan: Plan, state: State) -> dict[str, Any]:
        """Return what state holds of a plan that a human may be asked about."""
        seal = await self._seals.seal(_PLAN, _ANY_THREAD, _plan_facts(plan, state))
        return {"plan": plan.model_dump(), "plan_seal": seal}

    async def seal_request(self, state: State) -> dict[str, str]:
        """Return what state holds of the request as it was prepared."""
        seal = await self._seals.seal(_REQUEST, _ANY_THREAD, _request_facts(state))
        return {"request_seal": seal}

    async def check_request(self, state: State) -> None:
        """Check that the request is the one that was prepared.

        Raises:
            InputError: a client changed it since.
        """
        if not await self._seals.holds(
            state.get("request_seal"), _REQUEST, _ANY_THREAD, _request_facts(state)
        ):
            raise InputError(CHANGED)

    async def plan(self, state: State) -> Plan | None:
        """Return the current plan, or None where the graph made none in this very try."""
        plan = Plan.model_validate(state["plan"]) if state["plan"] else None
        if plan is None:
            return None
        ours = await self._seals.holds(state.get("plan_seal"), _PLAN, _ANY_THREAD, _plan_facts(plan, state))
        return plan if ours else None

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
            if made["type"] in APPROVED and await self._genuine(made, state, runtime)
        ]
        return rule == "each" or (rule == "first" and not before)

    async def record(
        self, made: dict[str, Any], state: State, runtime: Runtime[Context]
    ) -> list[dict[str, Any]]:
        """Return the decisions with one more."""
        owner = owner_of(runtime, NAME)
        made = made | {"run": owner.run}
        seal = await self._seals.seal(_DECISION, owner.thread, _facts(made, state))
        return [*state["decisions"], made | {"seal": seal}]

    async def approved(self, state: State, runtime: Runtime[Context]) -> Plan | None:
        """Return the current plan if the last decision is to carry it out, and the graph wrote both."""
        plan, made = await self.plan(state), (state["decisions"] or [{}])[-1]
        if plan is None or made.get("type") not in APPROVED:
            return None
        same = (made.get("plan_hash"), made.get("iteration")) == (plan.hash(), state["iteration"])
        if not same or not await self._genuine(made, state, runtime):
            return None
        return plan if await self._stands(made, state, runtime) else None

    async def begin_plan(self, state: State, runtime: Runtime[Context]) -> dict[str, str]:
        """Return what state is to hold before a step is carried out; empty where it does already."""
        thread, facts = owner_of(runtime, NAME).thread, [state["decisions"][-1]["seal"]]
        if await self._seals.holds(state["begun_seal"], _BEGUN, thread, facts):
            return {}
        return {"begun_seal": await self._seals.seal(_BEGUN, thread, facts)}

    async def _stands(self, made: Mapping[str, Any], state: State, runtime: Runtime[Context]) -> bool:
        """Whether the decision was not taken back.

        A rollback takes a run's checkpoints, and leaves what its node wrote beside the question
        (langgraph-api 0.16.7): a run without an answer finds the decision of a run that is gone. So it counts
        in its own run, and in others once its own run has put on record that it begins.
        """
        owner = owner_of(runtime, NAME)
        if made.get("run") == owner.run:
            return True
        return await self._seals.holds(state.get("begun_seal"), _BEGUN, owner.thread, [made.get("seal")])

    async def _genuine(self, made: Mapping[str, Any], state: State, runtime: Runtime[Context]) -> bool:
        thread = owner_of(runtime, NAME).thread
        return await self._seals.holds(made.get("seal"), _DECISION, thread, _facts(made, state))


def _request_facts(state: State) -> list[Any]:
    # A digest: a project has up to a megabyte, and is looked at in each step.
    agreed = json.dumps([state.get(key) for key in _AGREED], sort_keys=True, default=repr)
    return [state["prepared"], hashlib.sha256(agreed.encode()).hexdigest()]


def _plan_facts(plan: Plan, state: State) -> list[Any]:
    return [state["prepared"], state["iteration"], state["rejections"], plan.hash()]


def _facts(made: Mapping[str, Any], state: State) -> list[Any]:
    return [state["prepared"], {key: value for key, value in made.items() if key != "seal"}]
