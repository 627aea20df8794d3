"""What becomes of a command whose output goes nowhere, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli import exits

PROGRAM = str(Path(sys.executable).parent / "sandbox-agent")
LINES = 20_000
"""More than a pipe and all buffers hold."""
WORK = f"""
import sys
import typer
from agent.cli.entry import guarded, screen_for
from agent.cli.jsonl import JsonView

def lines():
    screen = screen_for()
    for number in range({LINES}):
        screen.line(f"line {{number}}")
    return 0

def objects():
    view = JsonView()
    for number in range({LINES}):
        view.write("thread", {{"n": number}})
    return 0

def text():
    sys.stdout.write("x")  # left in the buffer
    return 0

def other():
    raise OSError(28, "not the output's")

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(lambda: guarded(globals()[sys.argv.pop()]))
app(args=[])
"""


def command(kind: str, redirection: str) -> subprocess.CompletedProcess[str]:
    """Run work with its output somewhere; the exit code is the work's own."""
    shell = f'"$0" -c "$1" {kind} {redirection}'
    return subprocess.run(
        ["bash", "-c", f"{shell}; exit ${{PIPESTATUS[0]}}", sys.executable, WORK],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("kind", ["lines", "objects", "text"])
def test_output_that_cannot_be_written_is_one_line(kind: str) -> None:
    """No traceback, and no success: whoever reads the file would take it for whole."""
    done = command(kind, "> /dev/full")
    assert done.stderr == "The output cannot be written: No space left on device.\n"
    assert done.returncode == exits.PLATFORM


@pytest.mark.parametrize("arguments", ["--help", "repair --help", "--version", "sandboxes list --help"])
def test_help_that_cannot_be_written_is_one_line_too(arguments: str) -> None:
    """What ends before a command begins is watched as well."""
    done = subprocess.run(
        ["bash", "-c", f'"$0" {arguments} > /dev/full', PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.stderr == "The output cannot be written: No space left on device.\n"
    assert done.returncode == exits.PLATFORM


def test_errors_that_cannot_be_written_are_no_failed_repair() -> None:
    """There is nowhere to say so; the exit code is all that is left."""
    command = ["bash", "-c", '"$0" repair --bogus 2> /dev/full', PROGRAM]
    assert subprocess.run(command, check=False).returncode == exits.PLATFORM


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_input_in_any_encoding_is_taken(encoding: str) -> None:
    """What the encoding has not is read as UTF-8; what is not that either, is replaced."""
    code = """if True:
        import sys
        from agent.cli import output
        with output.watched():
            print(ascii(output.typed(sys.stdin.read())))
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONIOENCODING": encoding},
        input=b"caf\xc3\xa9 \xff",
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"'caf\\xe9 \\ufffd'\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-16"])
def test_characters_that_an_encoding_has_not_are_replaced(encoding: str) -> None:
    """Whatever a terminal says of itself, nothing that is written to it ends a command."""
    code = r"""if True:
        import sys
        from agent.cli import output
        from agent.cli.screen import Screen
        with output.watched():
            screen = Screen()
            screen.line("\u2717 tests \u2026 \U0001f600 \udce9 caf\xe9")
            screen.raw("caf\xe9\n")
            sys.exit(7)
    """
    env = {"PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (7, b"")
    # What programs read keeps to UTF-8: a patch with other characters would be another patch.
    assert done.stdout.endswith("caf\xe9\n".encode())
    first = done.stdout.removesuffix("caf\xe9\n".encode()).decode(encoding)
    assert " tests " in first


@pytest.mark.parametrize("kind", ["lines", "objects"])
def test_reader_that_has_enough_ends_the_command_quietly(kind: str) -> None:
    """With what a shell gives a program that SIGPIPE ended."""
    done = command(kind, "| head -1")
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""
    assert done.returncode == exits.READER_LEFT


def test_error_of_something_else_is_not_taken_for_the_outputs() -> None:
    """It is a fault of ours and stays one, no failure of a repair."""
    done = command("other", "")
    assert "not the output's" in done.stderr
    assert "cannot be written" not in done.stderr
    assert done.returncode == 3
