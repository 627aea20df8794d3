"""An approval that was taken back (its run was rolled back) is not carried out, whoever goes on."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from langgraph_sdk.client import LangGraphClient

from agent.scripted.bundled import bundled_project
from support.langgraph_dev import DevServer

PROGRAM = str(Path(sys.executable).parent / "sandbox-agent")
APPROVE = {"decisions": [{"type": "approve"}]}
REJECT = {"decisions": [{"type": "reject"}]}
CHAT = {"messages": [{"role": "user", "content": "Run `sleep 5; echo carried out`"}]}
REPAIR = {"project": bundled_project(), "test_command": "sleep 2; python -m pytest -q"}
CONTEXT: Any = {
    "agent": {"model": "scripted:chat", "ask_first": ["run_command"]},
    "plan_execute": {"model": "scripted:repair"},
}


async def answered(client: LangGraphClient, thread_id: str, graph: str, answer: Any) -> Any:
    """Answer the thread's one question."""
    (asked,) = (await client.threads.get_state(thread_id))["interrupts"]
    command: Any = {"resume": {asked["id"]: answer}}
    return await client.runs.wait(thread_id, graph, command=command, context=CONTEXT[graph])


async def taken_back(client: LangGraphClient, graph: str, given: Any) -> str:
    """Run to a question, approve it, and roll that run back once a tool works; return the thread."""
    thread_id = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread_id, graph, input=given, context=CONTEXT[graph])
    (asked,) = (await client.threads.get_state(thread_id))["interrupts"]
    run = await client.runs.create(
        thread_id,
        graph,
        command={"resume": {asked["id"]: APPROVE}},
        context=CONTEXT[graph],
        stream_mode=["custom"],
        stream_resumable=True,
    )
    async for part in client.runs.join_stream(thread_id, run["run_id"], last_event_id="-1"):
        if (isinstance(part.data, dict) and "start" in part.data.values()) or "'execute'" in str(part.data):
            break
    await client.runs.cancel(thread_id, run["run_id"], wait=True, action="rollback")
    return thread_id


async def test_plan_whose_approval_was_taken_back_is_asked_about_again(client: LangGraphClient) -> None:
    """A run without an answer carries nothing out; the plan can be rejected, or approved anew."""
    for answer, status in ((REJECT, "rejected"), (APPROVE, "passed")):
        thread_id = await taken_back(client, "plan_execute", REPAIR)
        for _ in range(2):
            await client.runs.wait(thread_id, "plan_execute", input=None, context=CONTEXT["plan_execute"])
            values: Any = (await client.threads.get_state(thread_id))["values"]
            assert (values["steps"], values["changes"]) == ([], {})
        await answered(client, thread_id, "plan_execute", answer)
        done: Any = (await client.threads.get_state(thread_id))["values"]
        assert (done["status"], len(done["steps"])) == (status, 0 if status == "rejected" else 2)


async def test_call_whose_approval_was_taken_back_does_not_run(client: LangGraphClient) -> None:
    """The model is told, and the thread goes on: the same call, made again, is asked about again."""
    thread_id = await taken_back(client, "agent", CHAT)
    state: Any = await client.runs.wait(thread_id, "agent", input=None, context=CONTEXT["agent"])
    assert "nobody gave it" in state["messages"][2]["content"]
    await client.runs.wait(thread_id, "agent", input=CHAT, context=CONTEXT["agent"])
    done = await answered(client, thread_id, "agent", APPROVE)
    ran = [m for m in done["messages"] if m["type"] == "tool" and "\ncarried out\n" in m["content"]]
    assert len(ran) == 1


async def test_rejection_on_the_command_line_carries_nothing_out(
    client: LangGraphClient, server: DevServer
) -> None:
    """`resume THREAD --reject`, after the approval was taken back: rejected is rejected."""
    for graph, given in (("plan_execute", REPAIR), ("agent", CHAT)):
        thread_id = await taken_back(client, graph, given)
        command = [PROGRAM, "resume", thread_id, "--reject", "no", "--server", server.url]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        said = (await process.communicate())[0].decode()
        assert "your answer was not sent" in said
        assert process.returncode != 0
        state = await client.threads.get_state(thread_id)
        assert state["values"].get("steps", []) == []  # type: ignore[union-attr]
        assert "\ncarried out\n" not in str(state["values"])
