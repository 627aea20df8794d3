"""The README's programs and commands do what it says."""

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.e2b_process import E2BLocal, isolation_arguments
from support.langgraph_dev import DevServer

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the README's blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.M | re.S)


def commands() -> Iterator[str]:
    """Yield the README's commands, without comments."""
    for block in blocks("bash"):
        for line in block.splitlines():
            yield line.partition("#")[0].strip()


async def run(program: str, env: dict[str, str]) -> str:
    """Run a Python program and return what it prints."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, env={**os.environ, **env}, stdout=pipe, stderr=pipe
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_readme_programs_run(server: DevServer, sandboxes: E2BLocal) -> None:
    """Each Python block runs as it stands, with only the server's address changed."""
    chat, repair, library = blocks("python")
    default = "http://127.0.0.1:2024"
    assert chat.count(default) == repair.count(default) == 1
    assert "3" in await run(chat.replace(default, server.url), {})
    out = await run(repair.replace(default, server.url), {})
    assert "shop/pricing.py" in out
    assert "passed\ndiff --git" in out
    await run(library, {"MODEL": "scripted:chat", **sandboxes.env})


def test_readme_commands_exist() -> None:
    """Every make target and every program that the README names is there."""
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
    seen = 0
    for command in commands():
        if command.startswith("make "):
            seen += 1
            assert command.split()[1] in targets, command
    assert seen >= 5


async def test_readme_starts_the_local_sandboxes() -> None:
    """The command that serves local sandboxes prints the three variables (on a free port here)."""
    (command,) = [line for line in commands() if "e2b-local" in line]
    program, *arguments = command.split()
    assert arguments == ["serve", "--port", "3000"]
    found = Path(sys.executable).parent / Path(program).name
    process = await asyncio.create_subprocess_exec(
        *(str(found), "serve", "--port", "0", *isolation_arguments()),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout
    try:
        names = [(await process.stdout.readline()).split(b"=")[0].decode() for _ in range(3)]
    finally:
        process.terminate()
        await process.communicate()
    assert names == ["E2B_API_URL", "E2B_SANDBOX_URL", "E2B_API_KEY"]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", TEXT))))
def test_readme_links_lead_somewhere(link: str) -> None:
    """Every relative link names a file of the repository."""
    assert (ROOT / link).exists()
