"""What the command line writes: plans, reports, diffs and tool calls."""

import io

import pytest
from rich.console import Console

from agent.cli.approval import automatic
from agent.cli.demo import demo_model
from agent.cli.exits import of_status
from agent.cli.repair_text import diff_lines, plan_table, report_lines
from agent.cli.repair_view import RepairView, show_result
from agent.cli.screen import Screen
from agent.cli.tool_view import arguments_line, result_digest
from agent.client import Failed, Finished, Interrupt, Progress, TestReport, Token, ToolEvent
from agent.settings import Settings
from support.sheet import Sheet

PLAN = {"summary": "Fix it", "steps": [{"file": "a[1].py", "change": "swap", "reason": "it is [bold]wrong"}]}
QUESTION = {"action_requests": [{"name": "execute_plan", "args": PLAN}], "plan_hash": "ab", "iteration": 2}


@pytest.mark.parametrize(
    ("report", "first"),
    [
        (TestReport(0, passed=3), "✓ 3 passed"),
        (TestReport(1, passed=3, failed=1, failing=("t.py::a",)), "✗ 1 failed, 3 passed"),
        (TestReport(None, timed_out=True), "✗ the tests did not end within their limit"),
        (TestReport(5, passed=0, failed=0), "✗ exit code 5, no test ran"),
        (TestReport(1, passed=3, failed=0), "✗ exit code 1, 3 passed"),
        (TestReport(0, passed=3, failed=0, reason="a changed"), "✗ a changed"),
        (TestReport(2), "✗ failed, exit code 2"),
    ],
)
def test_report_says_how_the_suite_ended(report: TestReport, first: str) -> None:
    """The verdict comes first, then each failing test."""
    lines = [line.plain.strip() for line in report_lines(report)]
    assert lines == [first, *report.failing]


def test_long_line_keeps_its_margin() -> None:
    """On a terminal words are not cut, and what follows stands further in; elsewhere a line stays one."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=24, color_system=None)
    Screen(console, ask=False).line("    one two three four tests/a_very_long_name.py::test")
    assert file.getvalue().splitlines() == [
        "    one two three four",
        "      tests/a_very_long_",
        "      name.py::test",
    ]
    sheet = Sheet()
    sheet.line(f"  {'word ' * 100}end")
    assert len(sheet.text.splitlines()) == 1


def test_plan_is_shown_as_it_is_written() -> None:
    """Square brackets in a plan are text, not markup."""
    sheet = Sheet()
    sheet.show(plan_table(PLAN))
    assert "a[1].py" in sheet.text
    assert "it is [bold]wrong" in sheet.text


def test_plan_on_a_narrow_terminal_is_a_list() -> None:
    """A table would leave its columns a few letters each; a file stays on one line."""
    steps = [
        {
            "file": "shop/pricing_of_things.py",
            "change": "one two three four five six",
            "reason": "it [is] so",
        },
        {"file": "b.py", "change": "swap", "reason": ""},
    ]

    def shown(width: int) -> list[str]:
        file = io.StringIO()
        console = Console(file=file, force_terminal=True, width=width, color_system=None)
        Screen(console, ask=False).show(plan_table({"summary": "x", "steps": steps}, width))
        return [line.rstrip() for line in file.getvalue().splitlines()]

    assert shown(34) == [
        "  1  shop/pricing_of_things.py",
        "     one two three four five six",
        "     it [is] so",
        "",
        "  2  b.py",
        "     swap",
    ]
    assert shown(30)[:3] == [
        "  1  shop/pricing_of_things.py",
        "     one two three four five",
        "     six",
    ]
    assert shown(50)[0].split() == ["File", "Change", "and", "reason"]


def test_diff_keeps_every_line() -> None:
    """Colours are added, text is not changed; also lines that look like headers."""
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\x20a\n+b [red]\n \n"
    assert [line.plain for line in diff_lines(diff)] == [f"  {line}" for line in diff[:-1].split("\n")]


def test_automatic_approval_is_announced() -> None:
    """Nobody has to guess who approved."""
    sheet = Sheet()
    answers = automatic(sheet, "--yes was given.")([Interrupt("i", QUESTION)])
    assert answers == {"i": {"decisions": [{"type": "approve"}], "plan_hash": "ab"}}
    assert "Approved automatically: --yes was given." in sheet.text


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("passed", 0),
        ("already_green", 0),
        ("failed", 1),
        ("rejected", 1),
        ("setup_failed", 1),
        ("no_progress", 1),
        ("", 1),
    ],
)
def test_exit_code_follows_the_status(status: str, code: int) -> None:
    """Only green is success."""
    assert of_status(status) == code


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"path": "a.py", "content": "x\\ny"}', "a.py, content: 3 characters"),
        ('{"command": "echo a\\necho b"}', "echo a …"),
        ("{}", ""),
        ("not json", "not json"),
    ],
)
def test_arguments_fit_one_line(text: str, shown: str) -> None:
    """The first argument is shown, the others by their size."""
    assert arguments_line(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("exit_code: 0\n<stdout>\n..\n6 passed\n</stdout>", "exit_code: 0  6 passed"),
        ("exit_code: 0 (2 s)\n<stdout-2>\nx </stdout> y\n</stdout-2>", "exit_code: 0 (2 s)  x </stdout> y"),
        ("outcome unknown: the connection broke", "outcome unknown: the connection broke"),
        ("Replaced 1 place in a.py.", "Replaced 1 place in a.py."),
        ("a\nb\nc", ""),
        ("exit_code: 3", "exit_code: 3"),
        ("exit_code: 1\n<stderr>\nno such file\n</stderr>", "exit_code: 1  no such file"),
        ("timed out after 5 s\n<stdout>\nx\n</stdout>", "timed out after 5 s  x"),
        ('<file path="a" lines="1-1 of 1">\nx\n</file>', ""),
        ("Wrote 8 bytes to a.py.", "Wrote 8 bytes to a.py."),
        ("error: no such file", "error: no such file"),
        ("", ""),
    ],
)
def test_result_fits_one_line(text: str, shown: str) -> None:
    """How a command ended and the last thing it said."""
    assert result_digest(text) == shown


def test_verbose_output_in_pieces_is_shown_by_the_line() -> None:
    """Pieces of one line are put together; the rest comes at the end."""
    sheet = Sheet()
    view = RepairView(sheet, verbose=True)
    for piece in (".", ".\n1 pas", "sed"):
        view.show(ToolEvent("output", "run_command", "c", piece))
    view.show(ToolEvent("end", "run_command", "c", "exit_code: 0"))
    assert [line.strip() for line in sheet.text.splitlines()] == ["..", "1 passed", "exit_code: 0"]


def test_a_step_has_one_heading_however_often_it_reports() -> None:
    """Repeated progress of a step is not repeated on the screen."""
    sheet = Sheet()
    view = RepairView(sheet)
    for message in ("Change a", "still at it"):
        view.show(Progress("execute", message, 1, 1, 2))
    view.show(Progress("execute", "Change b", 1, 2, 2))
    assert [line.strip() for line in sheet.text.splitlines() if line] == [
        "Steps",
        "1 of 2  Change a",
        "2 of 2  Change b",
    ]


def test_messages_for_chat_front_ends_are_left_out() -> None:
    """They repeat the plan and the diff, which are shown in their own way."""
    sheet = Sheet()
    RepairView(sheet, verbose=True).show(Token("the plan", whole=True))
    assert sheet.text == ""


def test_failure_shows_the_servers_text() -> None:
    """With the exception's name, as plain text."""
    sheet = Sheet()
    RepairView(sheet).show(Failed("no [red]key", "ModelError"))
    assert sheet.text.strip() == "The run failed: ModelError: no [red]key"


def test_result_shows_summary_and_status() -> None:
    """Every line of the summary is indented alike."""
    sheet = Sheet()
    assert show_result(sheet, Finished({"status": "rejected", "summary": "a\nb"})) == "rejected"
    assert sheet.text.splitlines()[-3:] == ["  rejected", "  a", "  b"]


@pytest.mark.parametrize(
    ("env", "model"),
    [
        ({}, "scripted:repair"),
        ({"OPENAI_API_KEY": "k"}, "scripted:repair"),
        ({"MODEL": "openai:gpt-5.6-luna"}, "scripted:repair"),
        ({"MODEL": "openai:gpt-5.6-luna", "OPENAI_API_KEY": "k"}, "openai:gpt-5.6-luna"),
        ({"MODEL": "scripted:chat"}, "scripted:chat"),
        ({"MODEL": "anthropic:claude"}, "anthropic:claude"),
    ],
)
def test_demo_uses_a_model_that_was_chosen_and_can_run(env: dict[str, str], model: str) -> None:
    """A key alone does not make the demo cost money."""
    assert demo_model(Settings.from_env(env)) == model
