"""A plan in the user's editor."""

from pathlib import Path
from typing import Any

import pytest

from agent.cli.approval import asked
from agent.cli.editing import as_yaml, edited_call, edited_plan, plan_of
from agent.client import Interrupt
from support.sheet import Sheet

PLAN = {"summary": "Fix it", "steps": [{"file": "a.py", "change": "swap: é", "reason": "wrong"}]}
QUESTION: dict[str, Any] = {
    "action_requests": [{"name": "execute_plan", "args": PLAN}],
    "review_configs": [{"action_name": "execute_plan", "allowed_decisions": ["approve", "edit", "reject"]}],
    "plan_hash": "ab",
}


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An editor that is a shell script; the test writes what it does to the file `$1`."""
    script = tmp_path / "editor"
    monkeypatch.setenv("VISUAL", str(script))
    return script


def write(script: Path, body: str) -> None:
    """Make the editor do something."""
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)


def test_plan_survives_the_way_to_yaml_and_back() -> None:
    """Nothing is lost or renamed."""
    assert plan_of(as_yaml(PLAN)) == PLAN


def test_edited_plan_is_what_was_saved(editor: Path) -> None:
    """The change in the editor is the change in the answer."""
    write(editor, 'sed -i "s/swap/turn around/" "$1"; touch -d "+2 seconds" "$1"')
    plan = edited_plan(Sheet(), PLAN)
    assert plan is not None
    assert plan["steps"][0]["change"] == "turn around: é"


def test_editor_that_fails_is_told_in_sentences(editor: Path) -> None:
    """With what names another."""
    write(editor, "exit 1")
    sheet = Sheet()
    assert edited_plan(sheet, PLAN) is None
    assert "Editing failed. VISUAL or EDITOR names another editor." in sheet.text


def test_leaving_without_saving_goes_back_to_the_question(editor: Path) -> None:
    """Nothing was decided."""
    write(editor, "exit 0")
    assert edited_plan(Sheet(), PLAN) is None


def test_broken_plan_is_named_and_edited_again(editor: Path) -> None:
    """The second look gets the text as the user left it."""
    swap = "if grep -q broken $1; then sed -i s/broken:/change:/ $1; else sed -i s/change:/broken:/ $1; fi"
    write(editor, f'{swap}\ntouch -d "+2 seconds" $1')
    sheet = Sheet("y")
    assert edited_plan(sheet, PLAN) == PLAN
    assert "step 1 needs `file`, `change` and `reason`" in sheet.text


@pytest.mark.parametrize("text", ["[", "summary: x", "summary: x\nsteps: []", "steps: [1]", "- a"])
def test_plan_of_refuses_what_is_no_plan(text: str) -> None:
    """With a ValueError, whatever is wrong."""
    with pytest.raises(ValueError, match=r"step|while parsing|a name and a value"):
        plan_of(text)


def test_edit_is_offered_only_where_it_is_allowed(editor: Path) -> None:
    """The answer carries the edited action and the hash of the plan that was shown."""
    write(editor, 'sed -i "s/Fix it/Fix both/" "$1"; touch -d "+2 seconds" "$1"')
    answers = asked(Sheet("e"))([Interrupt("i", QUESTION)])
    action = {"name": "execute_plan", "args": {**PLAN, "summary": "Fix both"}}
    assert answers == {"i": {"decisions": [{"type": "edit", "edited_action": action}], "plan_hash": "ab"}}
    config = {"action_name": "execute_plan", "allowed_decisions": ["approve", "reject"]}
    only = {**QUESTION, "review_configs": [config]}
    sheet = Sheet("e", "y")
    assert asked(sheet)([Interrupt("i", only)]) == {
        "i": {"decisions": [{"type": "approve"}], "plan_hash": "ab"}
    }


def test_arguments_of_a_call_are_edited_as_they_are_read(editor: Path) -> None:
    """Code of several lines stands there as lines, not as one quoted text."""
    write(
        editor, """grep -q "^  print(1)$" $1 && sed -i "s/print(2)/print(3)/" $1; touch -d "+2 seconds" $1"""
    )
    code = "print(1)\nprint(2)\n"
    assert edited_call(Sheet(), {"code": code, "limit_s": 5}) == {
        "code": "print(1)\nprint(3)\n",
        "limit_s": 5,
    }


@pytest.mark.parametrize(
    ("editor_does", "words"),
    [
        (r"printf 'summary: \351\n' > $1; touch -d '+2 seconds' $1", "What was saved is not UTF-8 text."),
        ("rm $1", "The editor left no file to read: No such file or directory."),
        (None, "The editor's command cannot be read: No closing quotation."),
    ],
)
def test_editor_that_gives_nothing_to_read_goes_back_to_the_question(
    editor: Path, monkeypatch: pytest.MonkeyPatch, editor_does: str | None, words: str
) -> None:
    """Nothing was decided; what is wrong, and the variable that names the editor, is said."""
    if editor_does:
        write(editor, editor_does)
    else:
        monkeypatch.setenv("VISUAL", 'sh -c "')
    sheet = Sheet("e", "n", "")
    assert asked(sheet)([Interrupt("i", QUESTION)]) == {
        "i": {"decisions": [{"type": "reject"}], "plan_hash": "ab"}
    }
    assert f"  {words} VISUAL or EDITOR names another editor.\n" in sheet.text
