"""A spinner leaves nothing behind: not on a terminal, and not in a file."""

import os
import subprocess
import sys
from pathlib import Path

import pyte
import pytest

from support.terminal import Terminal

COLUMNS = 100
WORK = """
import sys
from agent.cli.screen import Screen
screen = Screen()
with screen.busy("Working") as busy:
    screen.line("begun")
    while sys.argv[1] == "typed" and b"k" not in sys.stdin.buffer.raw.read(100):
        busy.update("Working on")
    busy.detail("a detail")
screen.line(f"done, {screen.ask('Well? ')}" if sys.argv[1] == "typed" else "done")
"""


def shown(raw: str) -> list[str]:
    """Return the lines on a terminal that was sent this."""
    screen = pyte.Screen(COLUMNS, 50)
    pyte.Stream(screen).feed(raw)
    return [line.rstrip() for line in screen.display if line.strip()]


@pytest.mark.parametrize("columns", ["", "300"])
def test_spinner_is_taken_off_whatever_columns_says(tmp_path: Path, columns: str) -> None:
    """Drawn wider than the terminal it would take two lines, of which one is taken off."""
    env = {"PATH": os.environ["PATH"], "COLUMNS": columns}
    command = [sys.executable, "-c", WORK, "plain"]
    with Terminal(command, env=env, cwd=tmp_path, columns=COLUMNS) as terminal:
        assert terminal.wait() == 0
    assert "Working" in terminal.text
    assert shown(terminal.raw) == ["begun", "done"]


def test_spinner_is_taken_off_whatever_is_typed_meanwhile(tmp_path: Path) -> None:
    """Nor is it shown there; at a question it is again, and none of it is taken for the answer."""
    env = {"PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", WORK, "typed"]
    with Terminal(command, env=env, cwd=tmp_path, columns=COLUMNS) as terminal:
        terminal.expect("Working")
        terminal.type("\n\nno\nk\n")
        terminal.expect("Well? ")
        terminal.type("yes\n")
        assert terminal.wait() == 0
    assert shown(terminal.raw) == ["begun", "Well? yes", "done, yes"]


def test_forced_colours_draw_no_spinner_into_a_file() -> None:
    """It is said once, as elsewhere without a terminal."""
    env = {"PATH": os.environ["PATH"], "FORCE_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WORK, "plain"], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "Working …\nbegun\ndone\n"
