"""The script `chat`: questions it turns into tool calls, and results it answers from."""

from typing import Any

import pytest

from agent.scripted.conversation import Answer, Conversation
from agent.scripted.model import ScriptedChatModel

MODEL = ScriptedChatModel.from_script("chat")
TOOLS = frozenset({"run_python", "run_command", "read_file", "write_file", "list_files"})


def ask(human: str, *results: tuple[str, str]) -> Answer:
    """Return the answer to a message, or to the results of the tools called for it."""
    return MODEL.answer(Conversation(human=human, tools=TOOLS, results=results))


def code(human: str) -> str:
    """Return the program that the answer to a message runs."""
    ((name, args),) = ask(human).calls
    assert name == "run_python"
    return str(args["code"])


def printed(source: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a program prints."""
    exec(source, {})
    return capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("How many r's are in 'strawberry'?", "3"),
        ("How many r’s are there in “strawberry”?", "3"),
        ("how often does the letter s appear in Mississippi", "4"),
        ("How many times is e in the word cheese?", "3"),
        ("Count the letter A in banana.", "3"),
        ("How many s in 'süß'?", "1"),
        ("How many z's are in 'word'?", "0"),
    ],
)
def test_letters_are_counted_by_code(question: str, count: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Any letter of any word is counted by a program, and the answer is what it printed."""
    assert printed(code(question), capsys) == count
    assert count in ask(question, ("run_python", f"<stdout>\n{count}\n</stdout>")).text


def test_sum_is_computed_by_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Arithmetic is computed, and answered with what was asked."""
    assert printed(code("What is (17 + 1) * 23?"), capsys) == "414"
    answer = ask("What is (17 + 1) * 23?", ("run_python", "<stdout>\n414\n</stdout>"))
    assert answer.text == "(17 + 1) * 23 = 414"


@pytest.mark.parametrize(
    ("question", "needed"),
    [
        ("Plot cos(x)", "np.cos(x)"),
        ("Please draw a bar chart of 3, 1 and 2.5", "'3, 1 and 2.5'"),
        ("draw a chart", "np.sin(x)"),
    ],
)
def test_figure_is_drawn_by_code(question: str, needed: str) -> None:
    """A request for a plot becomes a program that draws with matplotlib."""
    source = code(question)
    compile(source, "cell", "exec")
    assert needed in source
    assert "matplotlib" in source


def test_figure_is_claimed_only_if_the_result_has_one() -> None:
    """Code that ran without drawing is not called a figure."""
    assert "is drawn" in ask("plot sin(x)", ("run_python", "<result>\n<Figure size 640x480>\n</result>")).text
    assert "no figure" in ask("plot sin(x)", ("run_python", "ok, no output")).text


@pytest.mark.parametrize(
    ("request_", "call"),
    [
        ("run `ls -la`", ("run_command", {"command": "ls -la"})),
        ("Run this:\n```bash\nls\npwd\n```", ("run_command", {"command": "ls\npwd"})),
        ("Please run\n```python\nprint(1)\n```", ("run_python", {"code": "print(1)\n"})),
        ("Read notes.txt", ("read_file", {"path": "notes.txt"})),
        ("show me the file `src/a.py`.", ("read_file", {"path": "src/a.py"})),
        ("write notes.txt: hello", ("write_file", {"path": "notes.txt", "content": "hello\n"})),
        ('Write "it\'s" to notes.txt', ("write_file", {"path": "notes.txt", "content": "it's\n"})),
        ("Create a.py:\n```python\nx = 1\n```", ("write_file", {"path": "a.py", "content": "x = 1\n"})),
        ("List the files", ("list_files", {"path": "."})),
    ],
)
def test_request_becomes_the_call_it_names(request_: str, call: tuple[str, dict[str, Any]]) -> None:
    """Commands and files are taken from the message as they stand there."""
    assert ask(request_).calls == (call,)


@pytest.mark.parametrize(
    ("request_", "tool", "result", "told"),
    [
        ("run `ls`", "run_command", "exit_code: 0\n<stdout>\na.txt\n</stdout>", "a.txt"),
        ("read a.txt", "read_file", '<file path="a.txt" lines="1-1 of 1">\nink\n</file>', "```\nink\n```"),
        ("write a.txt: ink", "write_file", "Wrote 4 bytes to a.txt.", "Wrote 4 bytes"),
        ("list files", "list_files", "a.txt\nb/", "b/"),
    ],
)
def test_result_is_told(request_: str, tool: str, result: str, told: str) -> None:
    """The answer comes from the tool's result, and ends the turn."""
    answer = ask(request_, (tool, result))
    assert told in answer.text
    assert answer.calls == ()


@pytest.mark.parametrize(
    ("tool", "result", "why"),
    [
        ("run_python", "error: the sandbox cannot be reached", "cannot be reached"),
        (
            "run_python",
            "<stdout>\n3\n</stdout>\n<error>\nZeroDivisionError: x\n...\n</error>",
            "ZeroDivisionError: x",
        ),
        ("run_command", "exit_code: 2\n<stderr>\nno such file\n</stderr>", "failed with exit code 2"),
        ("run_command", "timed out after 120 s and was stopped", "timed out after 120 s"),
        ("run_command", "outcome unknown: the connection ended", "outcome unknown"),
        ("run_python", "<stdout>\n3\n</stdout>\ntimed out after 9 s and was interrupted", "after 9 s"),
        ("read_file", "error: a.txt does not exist", "a.txt does not exist"),
    ],
)
@pytest.mark.parametrize("question", ["How many r's are in 'strawberry'?", "plot sin(x)", "run `x`"])
def test_failure_is_told_as_one(question: str, tool: str, result: str, why: str) -> None:
    """Whatever was asked, a failed tool is answered with the failure and no pretence."""
    answer = ask(question, (tool, result))
    assert why in answer.text
    assert not answer.calls


@pytest.mark.parametrize(
    "question", ["Who are you?", "How many letters are in 'banana'?", "", "show me everything"]
)
def test_other_question_is_answered_with_what_it_can_do(question: str) -> None:
    """Anything else gets a friendly answer that says it is no model."""
    answer = ask(question)
    assert "scripted stand-in" in answer.text
    assert not answer.calls
