"""`sandbox-agent demo` as a user runs it: real servers, a real sandbox, the scripted model."""

import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.terminal import Terminal

COMMAND = [str(Path(sys.executable).parent / "sandbox-agent"), "demo"]
ROOT = Path(__file__).parents[2]


class Surroundings:
    """A marked environment, in which everything that a command leaves behind can be found."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "TMPDIR": str(folder),
            "SANDBOX_AGENT_TEST": self.mark,
        }

    def alive(self) -> list[psutil.Process]:
        """Return what still runs of the command, its servers included."""
        return [
            process
            for process in psutil.process_iter(["cmdline", "environ"])
            if (process.info["environ"] or {}).get("SANDBOX_AGENT_TEST") == self.mark
            or any(str(self.folder) in argument for argument in process.info["cmdline"] or [])
        ]

    def processes(self) -> list[str]:
        """Return the command lines of what still runs."""
        return [" ".join(process.info["cmdline"] or []) for process in self.alive()]

    def one(self, words: str) -> psutil.Process:
        """Return the one process with these words in its command line."""
        (found,) = [p for p in self.alive() if words in " ".join(p.info["cmdline"] or [])]
        return found

    def assert_clean(self) -> None:
        """Fail when a process or a temporary folder is left."""
        assert self.processes() == []
        assert list(self.folder.glob("sandbox-agent-*")) == []


@pytest.fixture
def surroundings(tmp_path: Path) -> Iterator[Surroundings]:
    """Surroundings that are clean again at the end of the test."""
    made = Surroundings(tmp_path)
    yield made
    made.assert_clean()


def test_demo_needs_no_checkout(surroundings: Surroundings, tmp_path: Path) -> None:
    """A package that lies by itself, as an installed wheel does, serves its own graph."""
    packages = tmp_path / "packages"
    for name in ("agent", "e2b_local"):
        shutil.copytree(ROOT / "src" / name, packages / name)
    env = surroundings.env | {"PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*COMMAND, "--yes"], cwd="/", env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ 14 passed" in done.stdout


def test_demo_without_a_terminal_repairs_the_project(surroundings: Surroundings) -> None:
    """Exit 0; the failing tests, the plan, the steps, the green tests and the diff are all plain text."""
    done = subprocess.run(
        COMMAND, cwd=ROOT, env=surroundings.env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    shown = done.stdout
    for text in (
        "scripted:repair (plays a script, asks no provider)",
        "✗ 5 failed, 9 passed",
        "tests/test_pricing.py::test_ten_pieces_get_five_percent",
        "Approved automatically: there is no terminal to ask on.",
        "1 of 2  Let a discount tier begin",
        "write_file shop/pricing.py",
        "✓ 14 passed",
        "-        order = Order(self.lines)",
        "+        order = Order(dict(self.lines))",
        "sandboxes left alive: 0",
    ):
        assert text in shown
    assert "\x1b" not in shown
    assert "\r" not in shown


def test_demo_on_a_terminal_asks_and_a_no_rejects(surroundings: Surroundings) -> None:
    """Only yes or no is an answer; a no without words ends the run with exit code 1 and nothing changed."""
    with Terminal(COMMAND, env=surroundings.env, cwd=ROOT) as terminal:
        terminal.expect("Carry out this plan?", timeout_s=90)
        terminal.type("perhaps\n")
        terminal.expect("Carry out this plan?")
        terminal.type("n\n")
        terminal.expect("Why not?")
        terminal.type("\n")
        terminal.expect("rejected")
        terminal.expect("sandboxes left alive: 0")
        assert terminal.wait() == 1
        assert "Steps" not in terminal.text


def test_demo_on_a_terminal_without_bubblewrap_says_so_and_goes_on_after_a_yes(
    surroundings: Surroundings,
) -> None:
    """The plan is carried out, exit code 0; the known code runs as plain processes, and it says so."""
    programs = surroundings.folder / "programs"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if program.name != "bwrap" and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    env = surroundings.env | {"PATH": str(programs)}
    with Terminal(COMMAND, env=env, cwd=ROOT) as terminal:
        terminal.expect("runs with --no-isolation")
        terminal.expect("Carry out this plan?", timeout_s=90)
        terminal.type("y\n")
        terminal.expect("✓ 14 passed", timeout_s=90)
        terminal.expect("sandboxes left alive: 0")
        assert terminal.wait() == 0


@pytest.mark.parametrize(
    "moment", ["Starting langgraph dev", "A new sandbox was made", "Carry out this plan?"]
)
def test_ctrl_c_stops_everything_at_any_moment(surroundings: Surroundings, moment: str) -> None:
    """While the servers start, in mid-run and at the question: exit code 130 and nothing left."""
    with Terminal(COMMAND, env=surroundings.env, cwd=ROOT) as terminal:
        terminal.expect(moment, timeout_s=90)
        terminal.type("\x03")
        assert terminal.wait() == 130


def test_sigterm_stops_everything(surroundings: Surroundings) -> None:
    """A supervisor's SIGTERM is as good as Ctrl-C."""
    with Terminal(COMMAND, env=surroundings.env, cwd=ROOT) as terminal:
        terminal.expect("A new sandbox was made", timeout_s=90)
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.wait() == 128 + signal.SIGTERM


def test_killed_server_ends_the_demo_at_once_and_a_killed_demo_its_servers(
    surroundings: Surroundings,
) -> None:
    """SIGKILL for langgraph dev is exit code 3 with its name; SIGKILL for the demo leaves no server."""
    with Terminal(COMMAND, env=surroundings.env, cwd=ROOT) as terminal:
        terminal.expect("Carry out this plan?", timeout_s=90)
        terminal.type("y\n")
        terminal.expect("1 of 2", timeout_s=90)
        surroundings.one("langgraph dev").kill()
        terminal.expect("langgraph dev has ended by itself (SIGKILL).", timeout_s=5)
        assert terminal.wait() == 3
    with Terminal(COMMAND, env=surroundings.env, cwd=ROOT) as terminal:
        terminal.expect("Starting langgraph dev", timeout_s=90)
        left = surroundings.alive()
        terminal.process.kill()
        psutil.wait_procs(left, timeout=20)
    for folder in surroundings.folder.glob("sandbox-agent-*"):  # nobody was left to remove it
        shutil.rmtree(folder)


def test_wrong_setting_is_one_line_and_exit_code_2(surroundings: Surroundings) -> None:
    """Nothing is started with a setting that cannot be used."""
    env = surroundings.env | {"SANDBOX_TIMEOUT": "-1"}
    done = subprocess.run(COMMAND, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("SANDBOX_TIMEOUT='-1' cannot be used")
    assert done.stdout == ""


def test_server_that_cannot_start_is_shown_with_its_log(surroundings: Surroundings, tmp_path: Path) -> None:
    """Exit code 3, and the reason from the server's own log is on the screen."""
    project = tmp_path / "project"
    project.mkdir()
    broken = '{"dependencies": ["."], "graphs": {"plan_execute": "./missing.py:graph"}}'
    (project / "langgraph.json").write_text(broken)
    command = [COMMAND[0], "--project", str(project), "demo"]
    done = subprocess.run(
        command, env=surroundings.env, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 3
    assert "langgraph dev ended before it was ready" in done.stdout
    assert "missing.py" in done.stdout
