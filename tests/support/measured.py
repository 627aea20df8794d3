"""Run a program that works in a sandbox in a process of its own, and say how much that one grew."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.e2b_process import E2BLocal

TESTS = Path(__file__).parents[1]

_PROGRAM = """
import asyncio, json, os, sys
sys.path.insert(0, os.getcwd())
from e2b_code_interpreter import AsyncSandbox
from agent.repair.workspace import Workspace
from agent.sandbox.live import box as box_of
from support.measured import grown_mb

async def attack(sandbox, box, work):
{attack}

async def ticking(ticks):
    while True:
        await asyncio.sleep(0.005)
        ticks.append(asyncio.get_running_loop().time())

async def main():
    sandbox = await AsyncSandbox.create(timeout=120)
    try:
        box = box_of(sandbox)
        await box.run_command("true", timeout_s=30)
        await box.run_code("1", timeout_s=30)
        ticks = []
        ticker = asyncio.create_task(ticking(ticks))
        with grown_mb() as grown:
            try:
                said = await attack(sandbox, box, Workspace(box))
            except Exception as exc:
                said = f"{{type(exc).__name__}}: {{exc}}"
        ticker.cancel()
        longest = max((b - a for a, b in zip(ticks, ticks[1:])), default=0)
        print(json.dumps({{"said": str(said)[:5000], "grown_mb": grown(), "longest_s": longest}}))
    finally:
        await sandbox.kill()

asyncio.run(main())
sys.stdout.flush()
os._exit(0)  # the SDK's connections have threads of their own, which may abort an orderly end
"""


@contextmanager
def grown_mb(pid: int | str = "self") -> Iterator[Callable[[], float]]:
    """Yield what says, afterwards, by how many MB a process grew in here at its largest."""
    # What it grew to before is forgotten.
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    before = _kb(pid, "VmRSS")
    grown: list[float] = []
    yield lambda: grown[0]
    grown.append((_kb(pid, "VmHWM") - before) / 1024)


def _kb(pid: int | str, field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of an attack."""

    said: str
    """What the work returned or raised."""
    grown_mb: float
    """By how much the process grew at its largest."""
    longest_s: float
    """How long the event loop did nothing else; for a look, no assertion: a machine may be busy."""


def measured(server: E2BLocal, attack: str) -> Measured:
    """Run the body of `async def attack(sandbox, box, work)` against a server, and measure."""
    body = "\n".join(f"    {line}" for line in attack.strip().splitlines())
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(attack=body)],
        env={**os.environ, **server.env},
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    found = json.loads(done.stdout.splitlines()[-1])
    return Measured(found["said"], found["grown_mb"], found["longest_s"])
