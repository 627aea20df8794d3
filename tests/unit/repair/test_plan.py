"""The plan and its approval."""

from typing import Any

import pytest
from pydantic import ValidationError

from agent.repair.approval import Answer, Approve, Reject, question
from agent.repair.plan import Plan, Step

STEP = {"file": "a.py", "change": "do it", "reason": "test_a fails"}
PLAN = Plan(summary="one bug", steps=[Step(**STEP)])


@pytest.mark.parametrize("count", [0, 21])
def test_plan_has_one_to_twenty_steps(count: int) -> None:
    """An empty plan is not a plan, and neither is an endless one."""
    with pytest.raises(ValidationError):
        Plan.model_validate({"summary": "s", "steps": [STEP] * count})


def test_plan_hash_follows_the_meaning() -> None:
    """Equal plans have equal hashes; any change of a step changes it."""
    same = Plan.model_validate(PLAN.model_dump())
    other = Plan(summary="one bug", steps=[Step(**STEP | {"change": "do something else"})])
    assert PLAN.hash() == same.hash() != other.hash()


def test_question_has_the_shape_front_ends_render() -> None:
    """One action with its review, both named alike; the plan's hash and try beside them."""
    value = question(PLAN, 2)
    (action,), (review,) = value["action_requests"], value["review_configs"]
    assert action["name"] == review["action_name"]
    assert action["args"] == PLAN.model_dump()
    assert "a.py" in action["description"]
    assert (value["plan_hash"], value["iteration"]) == (PLAN.hash(), 2)


def test_answer_tells_approval_from_rejection() -> None:
    """The two decisions of this version."""
    assert Answer.model_validate({"decisions": [{"type": "approve"}]}).decisions == [Approve(type="approve")]
    rejected = Answer.model_validate({"decisions": [{"type": "reject", "message": "no"}]})
    assert rejected.decisions == [Reject(type="reject", message="no")]


@pytest.mark.parametrize(
    "answer",
    [
        True,
        "yes",
        None,
        {},
        {"decisions": []},
        {"decisions": [{"type": "approve"}, {"type": "approve"}]},
        {"decisions": [{"type": "Approve"}]},
        {"decisions": [{"type": "approve", "because": "x"}]},
        {"decisions": [{"type": "approve"}], "also": 1},
    ],
)
def test_answer_refuses_all_else(answer: Any) -> None:
    """Nothing but an explicit decision is one: truthy values do not approve."""
    with pytest.raises(ValidationError):
        Answer.model_validate(answer)
