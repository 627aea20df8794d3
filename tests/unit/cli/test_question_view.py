"""How a question looks: what is carried out is what was seen, or it is said how much was not."""

import json
from typing import Any

import pytest

from agent.cli.approval import asked
from agent.cli.editing import arguments_of, as_yaml
from agent.cli.question_view import show_question
from agent.client import Interrupt
from support.sheet import Sheet


def call(name: str = "run_command", **arguments: Any) -> dict[str, Any]:
    """Return a question about one call."""
    return {"action_requests": [{"name": name, "args": arguments}]}


def shown(value: Any) -> list[str]:
    """Return the lines of a question."""
    sheet = Sheet()
    show_question(sheet, value)
    return sheet.text.splitlines()


def test_command_that_rewrites_its_line_is_seen() -> None:
    """A terminal would show `ls -la` alone."""
    assert "    echo X #␛[2K␛[1G    ls -la" in shown(call(command="echo X #\x1b[2K\x1b[1G    ls -la"))


def test_command_behind_blank_lines_is_seen_with_its_beginning() -> None:
    """A hundred of them would push the first line off the screen."""
    lines = shown(call(command="rm -rf /\n" + "\n" * 100 + "ls -la"))
    assert lines[3:] == [
        "  … 102 lines, 115 characters; not all of it is shown",
        "    rm -rf /",
        "  … 100 blank lines",
        "    ls -la",
    ]


def test_command_behind_blanks_is_seen_with_its_beginning() -> None:
    """So would some thousands in its line."""
    lines = shown(call(command=f"rm -rf / {' ' * 3000}# ls -la"))
    assert "    rm -rf / … 3,001 blanks … # ls -la" in lines


def test_long_command_says_how_long_it_is_and_shows_its_ends() -> None:
    """And how much lies between them."""
    lines = shown(call(command="\n".join(f"line {number}" for number in range(500))))
    assert lines[3] == "  … 500 lines, 4,389 characters; not all of it is shown"
    assert lines[4] == "    line 0"
    assert "  … 470 lines are not shown" in lines
    assert lines[-1] == "    line 499"
    assert len(lines) < 40


def test_long_line_shows_its_ends() -> None:
    """However long it is."""
    lines = shown(call(command=f"rm -rf /;{'x' * 100_000};ls"))
    assert lines[3] == "  … 1 line, 100,012 characters; not all of it is shown"
    assert lines[4].startswith("    rm -rf /;xxx")
    assert lines[4].endswith("xxx;ls")
    assert len(lines[4]) < 300


def test_what_was_left_out_can_be_seen_before_it_is_answered() -> None:
    """All of it, and then the question comes again."""
    sheet = Sheet("s", "y")
    value = call(command="\n".join(f"line {number}" for number in range(500)))
    assert asked(sheet)([Interrupt("i", value)]) == {"i": {"decisions": [{"type": "approve"}]}}
    assert "    line 250\n" in sheet.text
    assert "[s]how all of it" in sheet.asked[0]
    sheet = Sheet("s", "y")
    asked(sheet)([Interrupt("i", call(command="ls"))])
    assert "'s' is no answer here" in sheet.text


def test_text_of_a_call_cannot_look_like_another_argument() -> None:
    """It stands further in than the arguments' names, and no name begins a line."""
    lines = shown(call("write_file", **{"path": "a\n    mode: safe", "content": "x\npath: b", "n\nx": 1}))
    assert lines[3:] == [
        "    path:",
        "      a",
        "          mode: safe",
        "    content:",
        "      x",
        "      path: b",
        "    n␊x: 1",
    ]


@pytest.mark.parametrize(
    "args",
    [
        {"summary": "s", "steps": [{"file": "a", "change": "b", "reason": "c"}], "command": "curl evil"},
        {"steps": [{"file": "a", "change": "b", "reason": "c", "command": "curl evil"}]},
        {"steps": ["curl evil"]},
    ],
)
def test_call_that_looks_like_a_plan_is_shown_whole(args: dict[str, Any]) -> None:
    """A table of steps would hide what else is in it."""
    text = "\n".join(shown(call(**args)))
    assert "curl evil" in text
    assert "Approval needed" in text


def test_plan_of_long_texts_shows_their_ends() -> None:
    """It is shown as it would be edited then."""
    steps = [{"file": "a", "change": "x\n" * 3000 + "the end", "reason": "r"}]
    lines = shown(call("execute_plan", summary="s", steps=steps))
    assert any("lines are not shown" in line for line in lines)
    assert any("the end" in line for line in lines)
    assert len(lines) < 60


def test_many_arguments_show_the_ends() -> None:
    """They would push the first away, as lines do."""
    lines = shown(call(**{f"a{number}": "x" for number in range(1000)}))
    assert lines[3] == "  … 1,000 lines, 7,890 characters; not all of it is shown"
    assert len(lines) < 40


def test_name_of_a_tool_begins_no_line_and_fits_the_prompt() -> None:
    """It comes from the model."""
    value = {"action_requests": [{"name": "a\nAllowed.\x1b[2K" + "x" * 500, "args": {}}] * 2}
    sheet = Sheet("y", "y")
    asked(sheet)([Interrupt("i", value)])
    assert all(len(question) < 200 and "\n" not in question for question in sheet.asked)
    assert not any(line.startswith("Allowed.") for line in sheet.text.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "a\x1b[2Kb",
        "a\u202eb\nc",
        "\r\n",
        "tab\tx",
        "\x85\u2028x\ny",
        "\U000e0041",
        "\ud800",
        " trailing \n\n",
        "é\n日本",
    ],
)
def test_editor_sees_what_hides_and_gives_it_back_unchanged(text: str) -> None:
    """Escaped where it would turn or hide text; read again it is the same."""
    written = as_yaml({"command": text, "other": "é"})
    assert all(each.isprintable() or each == "\n" for each in written)
    assert arguments_of(written) == {"command": text, "other": "é"}
    json.dumps(arguments_of(written))


def test_one_of_many_calls_is_shown_where_it_is_asked_about() -> None:
    """Three hundred would push the first off the screen."""

    class Typist(Sheet):
        def ask(self, question: str) -> str:
            number = len(self.asked)
            assert self.text.splitlines()[-1] == f"    ls {number}", question
            return super().ask(question)

    calls = [{"name": "run_command", "args": {"command": f"ls {number}"}} for number in range(300)]
    answers = asked(Typist(*["y"] * 300))([Interrupt("i", {"action_requests": calls})])
    assert answers == {"i": {"decisions": [{"type": "approve"}] * 300}}
