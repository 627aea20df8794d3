"""The command line called in a folder that wants its code run: nothing of it is."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli.servers import free_port

PROGRAM = str(Path(sys.executable).parent / "sandbox-agent")
ROOT = Path(__file__).parents[2]


class HostileFolder:
    """A folder in which whatever is imported, read as configuration or started leaves a marker."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.marker = folder / "project", folder / "marker"
        self.folder.mkdir()
        python = f"import os\nopen({str(self.marker)!r}, 'a').write(__name__ + chr(10))\n"
        shell = f'#!/bin/sh\necho "$0" >>{self.marker}\nexit 1\n'
        for name in (
            "evil",
            "sitecustomize",
            "usercustomize",
            "agent",
            "typer",
            "dotenv",
            "langgraph_cli",
            "json",
            "click",
            "conftest",
            "encodings",
            "pytest",
            "rich",
            "startup",
        ):
            (self.folder / f"{name}.py").write_text(python)
        for name in (
            "git",
            "bwrap",
            "langgraph",
            "e2b-local",
            "python",
            "python3",
            ".venv/bin/langgraph",
            "make",
        ):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(shell)
            (self.folder / name).chmod(0o755)
        graphs = {"agent": "./evil.py:graph", "plan_execute": "./evil.py:graph"}
        (self.folder / "pyproject.toml").write_text(
            '[project]\nname = "evil"\nversion = "1"\n[build-system]\nrequires = []\n'
            'build-backend = "evil"\nbackend-path = ["."]\n[tool.pytest.ini_options]\naddopts = "-p evil"\n'
        )
        config = {"dependencies": ["."], "graphs": graphs, "http": {"app": "./evil.py:app"}, "env": ".env"}
        (self.folder / "langgraph.json").write_text(json.dumps(config))
        (self.folder / ".env").write_text(
            "LANGGRAPH_URL=http://127.0.0.1:9/${SECRET_KEY}\nMODEL=evil:model\n"
        )
        for command in (["init", "-q"], ["config", "core.fsmonitor", str(self.folder / "git")]):
            subprocess.run(["git", *command], cwd=self.folder, check=True)
        self.env = {
            "PATH": f".{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "PYTHONSTARTUP": "startup.py",
            "SECRET_KEY": "of-the-user",
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of ours in it."""
        return subprocess.run(
            [PROGRAM, *arguments],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def assert_nothing_ran(self) -> None:
        """Fail when it got something started."""
        assert not self.marker.exists(), self.marker.read_text()


@pytest.fixture
def port() -> int:
    """A port that is free."""
    return free_port()


@pytest.fixture
def hostile(tmp_path: Path) -> HostileFolder:
    """Such a folder."""
    return HostileFolder(tmp_path)


@pytest.mark.parametrize("command", ["doctor", "threads", "repair . --yes", "sandboxes list"])
def test_command_in_a_hostile_folder_runs_and_believes_nothing_of_it(
    hostile: HostileFolder, command: str
) -> None:
    """Neither its code, nor its programs, nor the address that would take a secret along."""
    done = hostile.run(*command.split())
    hostile.assert_nothing_ran()
    shown = done.stdout + done.stderr
    assert "Traceback" not in shown
    assert "of-the-user" not in shown
    assert "127.0.0.1:9" not in shown
    assert "evil:model" not in shown


def test_demo_in_a_hostile_folder_is_the_demo(hostile: HostileFolder) -> None:
    """It serves the graphs of the checkout that it comes from."""
    done = hostile.run("demo", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sandboxes left alive: 0" in done.stdout
    hostile.assert_nothing_ran()


def test_serve_in_a_hostile_folder_serves_the_project_that_was_named(
    hostile: HostileFolder, tmp_path: Path, port: int
) -> None:
    """Here one beside it, with the graphs of the checkout; its state lies there, too."""
    config = json.loads((ROOT / "langgraph.json").read_text())
    config["graphs"] = {name: str(ROOT / graph["path"]) for name, graph in config["graphs"].items()}
    config |= {"dependencies": [str(ROOT)], "http": {"app": str(ROOT / config["http"]["app"])}}
    named = tmp_path / "named"
    named.mkdir()
    (named / "langgraph.json").write_text(json.dumps(config))
    command = [PROGRAM, "--project", str(named), "serve", "--no-isolation", "--port", str(port)]
    server = subprocess.Popen(
        command,
        cwd=hostile.folder,
        env=hostile.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert server.stdout
    try:
        shown = ""
        for line in server.stdout:  # until it is ready, or has ended
            # Once: a line that is interrupted while it is written can come twice.
            if "Ready: " in line and "Ready: " not in shown:
                server.send_signal(signal.SIGINT)
            shown += line
        assert "Ready: " in shown, shown
        assert server.wait(60) == 130
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
    hostile.assert_nothing_ran()
    assert (named / ".langgraph_api").is_dir()
    assert not (hostile.folder / ".langgraph_api").exists()
