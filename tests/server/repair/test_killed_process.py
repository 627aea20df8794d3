"""A process that is killed in mid-step, on a durable checkpointer: another one goes on."""

import asyncio
import os
import sys
from pathlib import Path

from support.alive import alive
from support.e2b_process import E2BLocal
from support.openai_server import OpenAIServer
from support.repairs import ADD, DOUBLE, Mind, plan

TESTS = Path(__file__).parents[2]


async def test_killed_process_repeats_no_finished_step(
    mind: Mind, sandboxes: E2BLocal, openai: OpenAIServer, tmp_path: Path
) -> None:
    """kill -9 in step 2: the next process finds step 1 done, and the sandbox it was done in (A9, A20)."""
    mind.plans = [plan(ADD, ("calc.sh", "sleep 3"), DOUBLE)]
    env = os.environ | sandboxes.env | openai.env
    env |= {"DEPLOYMENT": "killed", "SANDBOX_INTERNET": "off", "PYTHONPATH": str(TESTS)}

    async def process(stretch: str) -> asyncio.subprocess.Process:
        program = TESTS / "server/repair/one_run.py"
        return await asyncio.create_subprocess_exec(
            *(sys.executable, str(program), str(tmp_path / "threads.db"), "killed-thread", stretch),
            env=env,
            stdout=asyncio.subprocess.PIPE,
        )

    await (await process("start")).wait()
    (before,) = await alive(sandboxes, deployment="killed")
    killed = await process("approve")
    async with asyncio.timeout(60):
        while len(mind.told) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    killed.kill()
    await killed.wait()
    (same,) = await alive(sandboxes, deployment="killed")
    assert same.sandbox_id == before.sandbox_id
    said, _ = await (await process("go-on")).communicate()
    assert said == b"passed"
    assert [told.split()[1] for told in mind.told] == ["1", "2", "2", "3"]
    assert await alive(sandboxes, deployment="killed") == []
