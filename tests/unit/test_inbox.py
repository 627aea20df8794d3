"""The older shape of a question and of its answer, beside the newer."""

from typing import Any

import pytest

from agent.approvals.inbox import for_inboxes, from_inbox


def _question(*allowed: str, calls: int = 1) -> dict[str, Any]:
    return {
        "action_requests": [{"name": "run", "args": {"n": 1}, "description": "Run it."}] * calls,
        "review_configs": [{"action_name": "run", "allowed_decisions": list(allowed)}] * calls,
        "actions_hash": "abc",
    }


def test_the_older_shape_stands_beside_the_newer() -> None:
    """Nothing of the question is lost, and what may be decided is the same."""
    asked = _question("approve", "reject")
    shown = for_inboxes(asked)
    assert {name: shown[name] for name in asked} == asked
    assert shown["action_request"] == {"action": "run", "args": {"n": 1}}
    assert shown["description"] == "Run it."
    assert shown["config"] == {
        "allow_accept": True,
        "allow_edit": False,
        "allow_respond": True,
        "allow_ignore": True,
    }
    only = for_inboxes(_question("approve", "edit"))["config"]
    assert [name for name, given in only.items() if given] == ["allow_accept", "allow_edit"]


def test_it_cannot_show_several_actions() -> None:
    """It would show the first and answer for all."""
    asked = _question("approve", calls=2)
    assert for_inboxes(asked) == asked


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ([{"type": "accept", "args": {"action": "run", "args": {}}}], {"type": "approve"}),
        ([{"type": "accept"}], {"type": "approve"}),
        ([{"type": "ignore", "args": None}], {"type": "reject"}),
        ([{"type": "response", "args": "no"}], {"type": "reject", "message": "no"}),
        (
            [
                {
                    "type": "edit",
                    "args": {"action": "run", "args": {"n": "2", "text": "3", "list": "[4", "x": 5}},
                }
            ],
            {
                "type": "edit",
                "edited_action": {"name": "run", "args": {"n": 2, "text": "3", "list": "[4", "x": 5}},
            },
        ),
    ],
)
def test_an_answer_in_it_is_one_decision(answer: Any, decision: dict[str, Any]) -> None:
    """An argument that was no text is sent as JSON, if what it was edited to is any."""
    asked = {"n": 1, "text": "1", "list": []}
    assert from_inbox(answer, asked, ("approve", "edit", "reject")) == {"decisions": [decision]}


def test_words_answer_in_the_place_of_a_tool_where_that_is_allowed() -> None:
    """Else they turn the action down."""
    answer = [{"type": "response", "args": "It is 4."}]
    decision = {"type": "respond", "message": "It is 4."}
    assert from_inbox(answer, {}, ("respond", "reject")) == {"decisions": [decision]}


@pytest.mark.parametrize(
    "answer",
    [
        {"decisions": [{"type": "approve"}]},
        {"type": "accept"},
        [],
        "accept",
        None,
        [{"type": "accept"}, {"type": "accept"}],
        [{"type": "response", "args": 7}],
        [{"type": "edit", "args": "text"}],
        [{"type": "approve"}],
    ],
)
def test_anything_else_stays_what_it_is(answer: Any) -> None:
    """For the question's schema to judge."""
    assert from_inbox(answer, {}, ("approve",)) is answer
