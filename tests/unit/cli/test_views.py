"""Views of a run: a chat as text, events as objects."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from agent.cli.chat_view import ChatView
from agent.cli.jsonl import JsonView
from agent.cli.screen import Screen
from agent.client import (
    Artifact,
    Event,
    Failed,
    Finished,
    Interrupt,
    Interrupted,
    SandboxNotice,
    TestReport,
    Tests,
    Token,
    ToolEvent,
    Update,
)
from support.sheet import Sheet, TerminalFile


def chat(tmp_path: Path, *events: Event) -> list[str]:
    """Return the lines a chat shows for some events."""
    sheet = Sheet()
    view = ChatView(sheet, charts=tmp_path / "charts")
    for event in events:
        view.show(event)
    view.follow(None)
    return [line.rstrip() for line in sheet.text.splitlines()]


def test_chat_writes_words_as_they_come_and_a_message_a_paragraph(tmp_path: Path) -> None:
    """Pieces of one message are one line; the next message begins a new one."""
    pieces = [Token("Hel", "m", "1"), Token("lo", "m", "1"), Token("Bye", "m", "2"), Finished({})]
    assert chat(tmp_path, *pieces) == ["Hello", "Bye"]


def test_chat_shows_a_message_once(tmp_path: Path) -> None:
    """A node may put the message it streamed into the state; only what was not streamed is shown then."""
    events = [Token("Hi", "m", "1"), Token("Hi", "m", "1", whole=True), Token("Yo", "m", "2", whole=True)]
    assert chat(tmp_path, *events) == ["Hi", "Yo"]


def test_chat_shows_code_output_and_result(tmp_path: Path) -> None:
    """Output that comes in pieces is put together; the value of the last expression follows."""
    call = '{"code": "print(1)\\n2"}'
    events = [
        ToolEvent("start", "run_python", "c", call),
        ToolEvent("output", "run_python", "c", "1"),
        ToolEvent("output", "run_python", "c", "\n"),
        ToolEvent("end", "run_python", "c", "<stdout>\n1\n</stdout>\n<result>\n2\n</result>"),
    ]
    assert chat(tmp_path, *events) == ["  run_python", "    print(1)", "    2", "    1", "    2"]


def test_chat_says_how_long_a_silent_tool_has_worked(tmp_path: Path) -> None:
    """On a terminal beside the spinner; in a log nothing is repeated every few seconds."""
    beat = ToolEvent("heartbeat", "run_python", "c", elapsed_s=20)
    assert chat(tmp_path, beat) == []
    file = TerminalFile()
    screen = Screen(Console(file=file, force_terminal=True, width=80), ask=False)
    view = ChatView(screen, charts=tmp_path)
    with screen.busy("Thinking") as busy:
        view.follow(busy)
        view.show(Token("I look.\n"))
        view.show(beat)
    assert "run_python, 20 s" in file.getvalue()


def test_chat_shows_an_error_by_its_first_line(tmp_path: Path) -> None:
    """The traceback is the model's to read."""
    text = "<error>\nZeroDivisionError: division by zero\nTraceback …\n</error>"
    assert chat(tmp_path, ToolEvent("end", "run_python", "c", text)) == [
        "    ZeroDivisionError: division by zero"
    ]


def test_chat_saves_charts_and_says_where(tmp_path: Path) -> None:
    """One file a chart, under the ending of its kind; data for programs is not asked for."""
    sheet = Sheet()
    view = ChatView(sheet, charts=tmp_path / "charts")
    chart, drawing = Artifact("image/png", "ab.png"), Artifact("image/svg+xml", "cd.svg")
    assert [view.takes(each) for each in (chart, drawing, Artifact("application/json", "e.json"))] == [
        True,
        True,
        False,
    ]
    view.take(chart, b"\x89PNG")
    view.take(drawing, b"<svg/>")
    assert [line.strip() for line in sheet.text.splitlines()] == [
        f"chart: {tmp_path}/charts/chart-1.png",
        f"chart: {tmp_path}/charts/chart-2.svg",
    ]
    assert (tmp_path / "charts/chart-1.png").read_bytes() == b"\x89PNG"
    assert (tmp_path / "charts/chart-2.svg").read_bytes() == b"<svg/>"


@pytest.mark.parametrize("name", ["../../x.png", "a.png\0", "a.png/../../b", "a.\x1b[2J", "a.sh", "x" * 9000])
def test_chat_names_charts_itself(name: str, tmp_path: Path) -> None:
    """Whatever the server calls one: it lies in the folder, under the ending of its kind."""
    sheet = Sheet()
    view = ChatView(sheet, charts=tmp_path / "charts")
    view.take(Artifact("image/png", name), b"\x89PNG")
    view.take(Artifact("image/x\x1b[2J", name), b"?")
    assert {path.name for path in (tmp_path / "charts").iterdir()} == {"chart-1.png", "chart-2.bin"}
    assert "\x1b" not in sheet.text


def test_json_is_ascii() -> None:
    """A terminal obeys nothing of it, every encoding takes it, and it reads back as it was."""
    file = io.StringIO()
    odd = "\x1b[2J\x9b\u202e\u2028\ud800\x7fé"
    JsonView(file).show(Token(odd))
    assert file.getvalue().removesuffix("\n").isprintable()
    assert file.getvalue().isascii()
    assert json.loads(file.getvalue())["text"] == odd


def test_chat_tells_of_a_lost_sandbox_and_of_a_failure(tmp_path: Path) -> None:
    """What the user must know is shown, what is routine is not."""
    events = [
        SandboxNotice("created", "s1", "A new sandbox was made."),
        SandboxNotice("replaced", "s2", "Its files are lost."),
        Failed("no key", "ModelError"),
    ]
    assert chat(tmp_path, *events) == [
        "  sandbox: Its files are lost.",
        "The run failed: ModelError: no key",
    ]


def test_json_says_of_a_run_of_the_tests_whether_it_is_green() -> None:
    """A reader who looked at the exit code alone would take red for green."""
    file = io.StringIO()
    for report in (TestReport(0, passed=1), TestReport(0, passed=1, reason="tests/a.py changed")):
        JsonView(file).show(Tests("verify", report))
    green, red = (json.loads(line)["report"] for line in file.getvalue().splitlines())
    assert (green["green"], red["green"], red["reason"]) == (True, False, "tests/a.py changed")


def test_json_writes_one_object_an_event() -> None:
    """The kind is the class in snake case; a field of that name is renamed."""
    file = io.StringIO()
    view = JsonView(file)
    for event in (
        ToolEvent("start", "run_command", "c", "{}"),
        Tests("baseline", TestReport(1, failing=("t::a",))),
        Update("plan", {"large": "state"}),
        Interrupted((Interrupt("i", {"q": 1}),)),
    ):
        view.show(event)
    assert [json.loads(line) for line in file.getvalue().splitlines()] == [
        {
            "event": "tool_event",
            "what": "start",
            "name": "run_command",
            "tool_call_id": "c",
            "text": "{}",
            "elapsed_s": 0,
        },
        {
            "event": "tests",
            "phase": "baseline",
            "report": {
                "exit_code": 1,
                "timed_out": False,
                "passed": None,
                "failed": None,
                "failing": ["t::a"],
                "output": "",
                "skipped": None,
                "reason": "",
                "green": False,
            },
        },
        {"event": "update", "node": "plan"},
        {"event": "interrupted", "interrupts": [{"id": "i", "value": {"q": 1}}]},
    ]
