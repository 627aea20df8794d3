"""Asking a human to approve a plan, in the shape that chat front ends render and answer."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

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
