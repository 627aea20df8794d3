"""The examples that use the package as a library run as they stand."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from support.alive import alive
from support.e2b_process import E2BLocal

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("program", "answer"), [("own_agent.py", "3"), ("own_graph.py", "Linux")])
async def test_library_example_prints_what_the_sandbox_computed(
    sandboxes: E2BLocal, tmp_path: Path, program: str, answer: str
) -> None:
    """The middleware and the tools work in a user's own agent, and a sandbox in a user's own graph."""
    env = {**os.environ, **sandboxes.env, "MODEL": "scripted:chat", "DEPLOYMENT": program.replace(".", "-")}
    command = (sys.executable, str(EXAMPLES / program))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, env=env, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert answer in out.decode()
    assert await alive(sandboxes, deployment=env["DEPLOYMENT"]) == []
