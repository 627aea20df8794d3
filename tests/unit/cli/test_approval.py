"""Asking a human: what is shown, which answers count, and how they are worded for the graph."""

from typing import Any

import pytest

from agent.cli.approval import asked, left_open, rejected
from agent.client import Interrupt
from support.sheet import Sheet

PLAN = {"summary": "Fix it", "steps": [{"file": "a.py", "change": "swap", "reason": "wrong"}]}
QUESTION = {"action_requests": [{"name": "execute_plan", "args": PLAN}], "plan_hash": "ab", "iteration": 2}
ALL = ["approve", "edit", "reject", "respond"]
CALLS = {
    "action_requests": [
        {"name": "run_command", "args": {"command": "rm -r build", "limit_s": 9}},
        {"name": "write_file", "args": {"path": "a", "content": "x\ny"}},
    ],
    "review_configs": [
        {"action_name": "run_command", "allowed_decisions": ALL},
        {"action_name": "write_file", "allowed_decisions": ["approve", "reject"]},
    ],
}


def ask(sheet: Sheet, value: Any) -> Any:
    """Return the answer that comes of what a human types."""
    answers = asked(sheet)([Interrupt("i", value)])
    assert sheet.answers == []
    return answers and answers["i"]


def test_only_an_explicit_yes_approves() -> None:
    """Anything else is asked again; a no may carry words. The answer is bound to the plan that was shown."""
    sheet = Sheet("", "maybe", "YES")
    assert ask(sheet, QUESTION) == {"decisions": [{"type": "approve"}], "plan_hash": "ab"}
    assert "Plan (try 2)" in sheet.text
    assert ask(Sheet("no", "too big"), QUESTION) == {
        "decisions": [{"type": "reject", "message": "too big"}],
        "plan_hash": "ab",
    }
    assert ask(Sheet("n", ""), QUESTION)["decisions"] == [{"type": "reject"}]


def test_each_action_gets_its_own_decision_in_order() -> None:
    """Two calls in one question are two decisions; what one does not allow is asked again."""
    sheet = Sheet("r", "", "r", "it is gone already", "respond", "y")
    assert ask(sheet, CALLS) == {
        "decisions": [{"type": "respond", "message": "it is gone already"}, {"type": "approve"}]
    }
    assert "  1 of 2, run_command: Allow this? [y]es, [e]dit, [n]o, [r]espond instead: " in sheet.asked
    assert "  2 of 2, write_file: Allow this? [y]es, [n]o: " in sheet.asked
    for text in ("    rm -r build\n", "    limit_s: 9\n", "    content:\n      x\n      y\n"):
        assert text in sheet.text


def test_answer_that_is_none_is_told_what_is_accepted() -> None:
    """Only what this question takes; Enter alone is none either."""
    sheet = Sheet("maybe", "y")
    ask(sheet, QUESTION)
    assert "  'maybe' is no answer here. Type y or yes, n or no.\n" in sheet.text
    sheet = Sheet("", "n", "", "e", "y")
    ask(sheet, CALLS)
    assert "  Type y or yes, e or edit, n or no, r or respond.\n" in sheet.text
    assert "  'e' is no answer here. Type y or yes, n or no.\n" in sheet.text


@pytest.mark.parametrize("value", ["a word", {"question": "left"}, {"action_requests": "x"}, None])
def test_question_of_another_shape_is_shown_and_left_open(value: Any) -> None:
    """Nothing is guessed about what its answer would mean."""
    sheet = Sheet()
    assert ask(sheet, value) is None
    assert "answer it through the SDK" in sheet.text


def test_rejecting_without_a_terminal_has_words() -> None:
    """`resume --reject` answers what is open, and not the question that comes of it; both are shown."""
    sheet = Sheet()
    decide = rejected(sheet, "too much")
    assert decide([Interrupt("i", CALLS)]) == {
        "i": {"decisions": [{"type": "reject", "message": "too much"}] * 2}
    }
    assert "rm -r build" in sheet.text
    assert decide([Interrupt("j", QUESTION)]) is None
    assert "swap" in sheet.text


def test_nobody_to_ask_leaves_the_question_open() -> None:
    """It is shown all the same."""
    sheet = Sheet()
    assert left_open(sheet)([Interrupt("i", QUESTION)]) is None
    assert "swap" in sheet.text
