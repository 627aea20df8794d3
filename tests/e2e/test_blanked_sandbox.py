"""A sandbox whose id a client took out of state is found by what it says itself: used again, or swept."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from e2e.conftest import DEPLOYMENT
from e2e.test_state_is_input import APPROVE, CHAT, question
from support.alive import alive
from support.e2b_process import E2BLocal
from support.langgraph_dev import DevServer

SAY = {"messages": [{"role": "user", "content": "Run `echo approved`"}]}
REJECT = {"decisions": [{"type": "reject"}]}


def sweep(server: DevServer, sandboxes: E2BLocal) -> str:
    """Run the command as its user does; return what it printed."""
    done = subprocess.run(
        [Path(sys.executable).parent / "sandbox-agent", "sandboxes", "sweep", "--server", server.url],
        env={**sandboxes.env, "DEPLOYMENT": DEPLOYMENT, "COLUMNS": "300", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("beside", ["a rejection", "nothing"])
async def test_sandbox_whose_id_was_blanked_is_ended_by_a_sweep(
    client: LangGraphClient, server: DevServer, sandboxes: E2BLocal, beside: str
) -> None:
    """Beside an answer that runs nothing, and where the question is gone with the id."""
    thread_id, asked = await question(client, "agent", SAY, CHAT)
    (left,) = await alive(sandboxes, thread=thread_id)
    assert left.state.value == "paused"
    if beside == "nothing":
        await client.threads.update_state(
            thread_id, {"sandbox_id": ""}, as_node="SandboxMiddleware.after_agent"
        )
    else:
        command: Any = {"resume": {asked["id"]: REJECT}, "update": {"sandbox_id": ""}}
        await client.runs.wait(thread_id, "agent", command=command, context=CHAT)
    assert f"{left.sandbox_id}  ended  its run has ended" in sweep(server, sandboxes)
    assert await alive(sandboxes, thread=thread_id) == []


async def test_sandbox_whose_id_was_blanked_beside_an_approval_is_used_again(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """The call looks for what its turn made: no second one is made, and the run ends it."""
    thread_id, asked = await question(client, "agent", SAY, CHAT)
    (left,) = await alive(sandboxes, thread=thread_id)
    command: Any = {"resume": {asked["id"]: APPROVE}, "update": {"sandbox_id": ""}}
    started = [
        part.data
        async for part in client.runs.stream(
            thread_id, "agent", command=command, context=CHAT, stream_mode="custom"
        )
        if part.event == "custom" and left.sandbox_id in str(part.data)
    ]
    assert started
    assert await alive(sandboxes, thread=thread_id) == []
