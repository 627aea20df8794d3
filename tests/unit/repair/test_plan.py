"""The plan and its approval."""

from typing import Any

import pytest
from pydantic import ValidationError

from agent.repair.approval import Answer, Approve, Edit, Reject, question
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
    value = question(PLAN, 2, 1)
    (action,), (review,) = value["action_requests"], value["review_configs"]
    assert action["name"] == review["action_name"]
    assert action["args"] == PLAN.model_dump()
    assert "a.py" in action["description"]
    assert review["allowed_decisions"] == ["approve", "edit", "reject"]
    assert (value["plan_hash"], value["iteration"], value["rejections"]) == (PLAN.hash(), 2, 1)


def decision(**fields: Any) -> Approve | Edit | Reject:
    """Return a decision as it is read."""
    (found,) = Answer.model_validate({"decisions": [fields]}).decisions
    return found


def test_answer_reads_approval_and_edit() -> None:
    """An edit carries the whole plan, which is checked as the model's is."""
    assert decision(type="approve") == Approve(type="approve")
    edited = decision(type="edit", edited_action={"name": "execute_plan", "args": PLAN.model_dump()})
    assert isinstance(edited, Edit)
    assert edited.edited_action.args == PLAN


@pytest.mark.parametrize(
    ("fields", "stops"),
    [
        ({}, True),
        ({"message": " "}, True),
        ({"message": "use a set"}, False),
        ({"message": "no time", "stop": True}, True),
        ({"stop": False}, False),
    ],
)
def test_rejection_with_words_asks_for_another_plan(fields: dict[str, Any], stops: bool) -> None:
    """Without words, or when it says so, it ends the run."""
    rejected = decision(type="reject", **fields)
    assert isinstance(rejected, Reject)
    assert rejected.stops is stops


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
        {"decisions": [{"type": "edit"}]},
        {"decisions": [{"type": "edit", "edited_action": {"name": "rm", "args": PLAN.model_dump()}}]},
        {"decisions": [{"type": "edit", "edited_action": {"name": "execute_plan", "args": {"steps": []}}}]},
        {"decisions": [{"type": "reject", "message": "x" * 10_001}]},
    ],
)
def test_answer_refuses_all_else(answer: Any) -> None:
    """Nothing but an explicit decision is one: truthy values do not approve."""
    with pytest.raises(ValidationError):
        Answer.model_validate(answer)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("a.py", ""),
        ("../a.py", "step 1: '../a.py' is no path within the project"),
        ("/etc/passwd", "step 1: '/etc/passwd' is no path"),
        ("tests/test_a.py", "'tests/test_a.py' is protected"),
        ("a/.git/config", "is a cache's, or version control's"),
        ("__pycache__/x.py", "is a cache's, or version control's"),
    ],
)
def test_plan_problems_names_steps_that_cannot_be_carried_out(file: str, words: str) -> None:
    """Outside of the project, undone before the tests, or no part of a patch."""
    plan = Plan(summary="s", steps=[Step(**STEP | {"file": file})])
    assert words in plan.problems(["tests/**"], 20)
    assert bool(words) == bool(plan.problems(["tests/**"], 20))


def test_plan_problems_counts_the_steps_that_are_left() -> None:
    """A plan longer than the run's limit would be cut in the middle."""
    assert Plan(summary="s", steps=[Step(**STEP)] * 3).problems([], 2) == (
        "3 steps are too many: 2 are left to this run"
    )
