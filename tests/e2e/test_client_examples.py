"""The examples on plain langgraph-sdk run as they stand against a real server."""

import re
import subprocess
import sys
from pathlib import Path

import agent.scripted
from support.langgraph_dev import DevServer

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCS = Path(__file__).parents[2] / "docs" / "client.md"
SHOP = str(Path(agent.scripted.__file__).parent / "broken_shop")


def run(program: str, *arguments: str) -> str:
    """Run an example and return what it prints."""
    command = [sys.executable, str(EXAMPLES / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_async_example_repairs_a_folder(server: DevServer) -> None:
    """Start, approve, resume and the diff in one program."""
    shown = run("client_async.py", server.url, SHOP)
    assert "Let a discount tier begin" in shown
    assert "passed\n" in shown
    assert "+        if quantity >= pieces:" in shown


def test_sync_example_approves_from_a_second_process(server: DevServer) -> None:
    """The first process prints the thread, the second goes on with it."""
    thread = run("client_sync.py", server.url, SHOP).splitlines()[-1]
    shown = run("client_sync.py", server.url, thread)
    assert shown.startswith("passed\n")
    assert "+        if quantity >= pieces:" in shown


def test_program_in_the_docs_repairs_a_project(server: DevServer) -> None:
    """The page about the client shows a program that works as it stands."""
    (program,) = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.M | re.S)
    program += f"""

import asyncio
from agent.scripted.bundled import bundled_project

print(asyncio.run(repair({server.url!r}, bundled_project())))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "+        if quantity >= pieces:" in done.stdout
