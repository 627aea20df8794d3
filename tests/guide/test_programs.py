"""The programs of E2B's LangGraph guide, run as they stand: only the environment points elsewhere.

That each ends its sandbox is asserted after every test, in `conftest.py`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from support.e2b_process import E2BLocal
from support.openai_server import OpenAIServer

PROGRAMS = Path(__file__).parent / "programs"


def run(name: str, env: dict[str, str]) -> list[str]:
    """Run a program to its end and return the lines it printed."""
    done = subprocess.run(
        [sys.executable, PROGRAMS / name],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_agent_counts_by_running_code(e2b: E2BLocal, openai: OpenAIServer) -> None:
    """The agent with `run_python` answers what the code in the sandbox returned."""
    assert run("agent.py", {**e2b.env, **openai.env}) == ["The code says 3."]
    assert openai.paths == ["/v1/responses"] * 2
    output = openai.requests[1]["input"][-1]
    assert (output["type"], output["output"]) == ("function_call_output", "3")


def test_state_graph_prints_the_sandbox_python(e2b: E2BLocal) -> None:
    """The node runs code in the sandbox of the context and puts its output in state."""
    [version] = [line for line in run("state_graph.py", e2b.env) if line]
    assert re.fullmatch(r"3\.\d+\.\d+", version)


def test_resume_finds_the_same_sandbox(e2b: E2BLocal) -> None:
    """After an interrupt and a pause, connecting by the id in state gives the same kernel."""
    lines = run("resume.py", e2b.env)
    assert lines[:3] == ["asked: Go on?", "same sandbox: True", "approved: True, the kernel is the same"]


def test_lifecycle_pauses_and_resumes_by_itself(e2b: E2BLocal) -> None:
    """A paused sandbox made with `auto_resume` runs again at the next call, variables and all."""
    assert run("lifecycle.py", e2b.env) == ["paused", "42", "running"]
