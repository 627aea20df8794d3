"""Asking a human to approve a plan, in the shape that chat front ends render and answer."""

from typing import Annotated, Any, Literal

from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.errors import InputError
from agent.repair.plan import Plan

ACTION = "execute_plan"


class Approve(BaseModel):
    """Carry the plan out as shown."""

    model_config = ConfigDict(extra="forbid")
    type: Literal["approve"]


class Reject(BaseModel):
    """Do not carry it out."""

    model_config = ConfigDict(extra="forbid")
    type: Literal["reject"]
    message: str = Field(default="", description="Why, in the human's words.")


Decision = Annotated[Approve | Reject, Field(discriminator="type")]


class Answer(BaseModel):
    """The human's answer: exactly one decision.

    Extra keys are refused, so that an answer meant for another question cannot pass for one to this.
    """

    model_config = ConfigDict(extra="forbid")
    decisions: list[Decision] = Field(min_length=1, max_length=1)
    plan_hash: str | None = Field(
        default=None, description="Hash of the plan that was shown; checked if given."
    )


def question(plan: Plan, iteration: int) -> dict[str, Any]:
    """Return the interrupt's value: the plan as one action to decide on."""
    return {
        "action_requests": [
            {"name": ACTION, "args": plan.model_dump(), "description": plan.as_markdown()},
        ],
        "review_configs": [{"action_name": ACTION, "allowed_decisions": ["approve", "reject"]}],
        "plan_hash": plan.hash(),
        "iteration": iteration,
    }


def asked(value: dict[str, Any]) -> Answer:
    """Stop the graph at the question; return the answer once there is one.

    Raises:
        InputError: what came is no answer; nothing is approved, and the question stays open.
    """
    try:
        return Answer.model_validate(interrupt(value, response_schema=Answer))
    except ValidationError as exc:
        problem = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}" for e in exc.errors())
        raise InputError(
            f"that is no answer to the question ({problem}). Nothing was approved and it is still open: "
            'answer with {"decisions": [{"type": "approve"}]} or '
            '{"decisions": [{"type": "reject", "message": "why"}]}'
        ) from None
