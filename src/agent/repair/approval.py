"""Asking a human about a plan, in the shape that chat front ends render and answer."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent.approvals.answers import answer_to
from agent.approvals.inbox import for_inboxes, from_inbox
from agent.errors import InputError, problems
from agent.repair.plan import Plan

ACTION = "execute_plan"
_ALLOWED = ("approve", "edit", "reject")
MAX_MESSAGE_CHARS = 10_000


class Approve(BaseModel):
    """Carry the plan out as shown."""

    model_config = ConfigDict(extra="forbid")
    type: Literal["approve"]


class EditedAction(BaseModel):
    """The plan as the human wants it."""

    model_config = ConfigDict(extra="forbid")
    name: Literal["execute_plan"]
    args: Plan


class Edit(BaseModel):
    """Carry out this plan instead of the one that was shown."""

    model_config = ConfigDict(extra="forbid")
    type: Literal["edit"]
    edited_action: EditedAction


class Reject(BaseModel):
    """Do not carry it out: with a message make another plan that heeds it, without one stop."""

    model_config = ConfigDict(extra="forbid")
    type: Literal["reject"]
    message: str = Field(
        default="", max_length=MAX_MESSAGE_CHARS, description="What is wrong with the plan, for the next one."
    )
    stop: bool | None = Field(
        default=None, description="true: stop, whatever the message says. Default: stop if there is none."
    )

    @property
    def stops(self) -> bool:
        """Whether the run ends with this."""
        return self.stop if self.stop is not None else not self.message.strip()


Decision = Annotated[Approve | Edit | Reject, Field(discriminator="type")]


class Answer(BaseModel):
    """The human's answer: exactly one decision.

    Extra keys are refused, so that an answer meant for another question cannot pass for one to this.
    """

    model_config = ConfigDict(extra="forbid")
    decisions: list[Decision] = Field(min_length=1, max_length=1)

    @model_validator(mode="before")
    @classmethod
    def _older(cls, answer: Any) -> Any:
        return from_inbox(answer, {"steps": []}, _ALLOWED)

    plan_hash: str | None = Field(
        default=None, description="Hash of the plan that was shown; checked if given."
    )


def question(plan: Plan, iteration: int, rejections: int = 0) -> dict[str, Any]:
    """Return the interrupt's value: the plan as one action to decide on."""
    value = {
        "action_requests": [
            {"name": ACTION, "args": plan.model_dump(), "description": plan.as_markdown()},
        ],
        "review_configs": [{"action_name": ACTION, "allowed_decisions": list(_ALLOWED)}],
        "plan_hash": plan.hash(),
        "iteration": iteration,
        "rejections": rejections,
    }
    return for_inboxes(value)


def decided(value: dict[str, Any], problem: Callable[[Plan], str]) -> Approve | Edit | Reject:
    """Stop the graph at the question; return the decision once there is one that can be carried out.

    An answer for another plan, and an edited plan that cannot be carried out, are asked again with a word on
    it: raised as an error, such an answer would be kept and given again on every resume.

    Args:
        value: the question.
        problem: says what keeps an edited plan from being carried out.

    Raises:
        InputError: what came is no answer; nothing is approved, and the question stays open.
    """
    answer = _answer(value)
    while notice := _refused(answer, value["plan_hash"], problem):
        answer = _answer(value | {"notice": notice})
    return answer.decisions[0]


def _refused(answer: Answer, plan_hash: str, problem: Callable[[Plan], str]) -> str:
    if answer.plan_hash not in {None, plan_hash}:
        return "That answer was for another plan; this is the current one. Nothing was approved."
    decision = answer.decisions[0]
    if isinstance(decision, Edit) and (why := problem(decision.edited_action.args)):
        return f"The edited plan cannot be carried out: {why}. Nothing was approved; this is the plan it was."
    return ""


def _answer(value: dict[str, Any]) -> Answer:
    try:
        return Answer.model_validate(answer_to(value, Answer))
    except ValidationError as exc:
        raise InputError(
            f"that is no answer to the question ({problems(exc, 'answer')}). Nothing was approved and it is "
            'still open: answer with {"decisions": [{"type": "approve"}]}, '
            '{"decisions": [{"type": "edit", "edited_action": {"name": "execute_plan", "args": <plan>}}]} or '
            '{"decisions": [{"type": "reject", "message": "what to do instead"}]}; without a message it stops'
        ) from None
