"""The graph `plan_execute`, served: a broken project, a plan, a human, green tests."""

import asyncio
from pathlib import Path
from typing import Any

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from agent.scripted.bundled import bundled_project
from support.alive import alive
from support.e2b_process import E2BLocal
from support.langgraph_dev import DevServer

ROOT = Path(__file__).parents[2]
CONTEXT = {"model": "scripted:repair"}
APPROVE = {"decisions": [{"type": "approve"}]}


async def to_the_question(client: LangGraphClient, project: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Run to the approval; return the thread's id and the one interrupt."""
    thread_id = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread_id, "plan_execute", input={"project": project}, context=CONTEXT)
    (interrupt,) = (await client.threads.get_state(thread_id))["interrupts"]
    return thread_id, interrupt


async def answer(client: LangGraphClient, thread_id: str, interrupt: dict[str, Any], reply: Any) -> Any:
    """Answer the interrupt by its id and return the state at the end."""
    await client.runs.wait(
        thread_id, "plan_execute", command={"resume": {interrupt["id"]: reply}}, context=CONTEXT
    )
    return (await client.threads.get_state(thread_id))["values"]


async def test_repair_approved_ends_green_with_a_diff(
    client: LangGraphClient, sandboxes: E2BLocal, tmp_path: Path
) -> None:
    """The whole road: red baseline, plan, approval, steps, green; git applies the diff to the original."""
    project = bundled_project()
    thread_id, interrupt = await to_the_question(client, project)
    value = interrupt["value"]
    assert [request["name"] for request in value["action_requests"]] == ["execute_plan"]
    assert {step["file"] for step in value["action_requests"][0]["args"]["steps"]} == {
        "shop/basket.py",
        "shop/pricing.py",
    }
    state = await answer(client, thread_id, interrupt, APPROVE | {"plan_hash": value["plan_hash"]})
    assert state["status"] == "passed"
    assert (state["tests_before"]["failed"], state["tests_after"]["failed"]) == (5, 0)
    assert state["step"] == len(state["steps"]) == 2
    assert state["sandbox_id"] == ""
    assert await alive(sandboxes, thread=thread_id) == []
    for path, text in project.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    git = await asyncio.create_subprocess_exec(
        "git", "apply", "-", cwd=tmp_path, stdin=asyncio.subprocess.PIPE
    )
    await git.communicate(state["diff"].encode())
    assert git.returncode == 0
    assert "quantity >= pieces" in (tmp_path / "shop/pricing.py").read_text()


async def test_repair_rejected_changes_nothing(client: LangGraphClient, sandboxes: E2BLocal) -> None:
    """The sandbox sleeps while a human thinks; a rejection that stops ends it and says what was said."""
    thread_id, interrupt = await to_the_question(client, bundled_project())
    (asleep,) = await alive(sandboxes, thread=thread_id)
    assert asleep.state.value == "paused"
    reply = {"decisions": [{"type": "reject", "message": "not on a Friday", "stop": True}]}
    state = await answer(client, thread_id, interrupt, reply)
    assert (state["status"], state["diff"], state["step"]) == ("rejected", "", 0)
    assert "not on a Friday" in state["summary"]
    assert await alive(sandboxes, thread=thread_id) == []


async def test_malformed_answers_approve_nothing_and_leave_the_question(client: LangGraphClient) -> None:
    """Nothing but an explicit approval approves; afterwards a right answer still works."""
    thread_id, interrupt = await to_the_question(client, bundled_project())
    for reply in (True, "approve", {"decisions": []}, {"decisions": [{"type": "ok"}]}):
        result = await client.runs.wait(
            thread_id,
            "plan_execute",
            command={"resume": {interrupt["id"]: reply}},
            context=CONTEXT,
            raise_error=False,
        )
        assert "no answer to the question" in result["__error__"]["message"]
        state = await client.threads.get_state(thread_id)
        assert [pending["id"] for pending in state["interrupts"]] == [interrupt["id"]]
        assert state["values"]["step"] == 0
    reject = {"decisions": [{"type": "reject"}]}
    assert (await answer(client, thread_id, interrupt, reject))["status"] == "rejected"


async def test_bad_input_fails_before_any_sandbox(client: LangGraphClient, sandboxes: E2BLocal) -> None:
    """One clear error, and no sandbox was made."""
    thread_id = (await client.threads.create())["thread_id"]
    for given in ({"project": {"../evil": "x"}}, {"project": {"a": "x"}, "limits": {"tries": 99}}):
        result = await client.runs.wait(
            thread_id, "plan_execute", input=given, context=CONTEXT, raise_error=False
        )
        assert result["__error__"]["error"] == "InputError"
        assert "`project`" in result["__error__"]["message"] or "`limits`" in result["__error__"]["message"]
    assert await alive(sandboxes, thread=thread_id) == []


async def test_model_that_cannot_be_built_leaves_no_sandbox(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """It is found out before a sandbox is made, in both graphs."""
    for graph, given in (
        ("plan_execute", {"project": bundled_project()}),
        ("agent", {"messages": ["hello"]}),
    ):
        thread_id = (await client.threads.create())["thread_id"]
        context = {"model": "scripted:nobody"}
        result = await client.runs.wait(thread_id, graph, input=given, context=context, raise_error=False)
        assert "there is no script 'nobody'" in result["__error__"]["message"]
        assert await alive(sandboxes, thread=thread_id) == []


async def test_approval_survives_a_restart_of_the_server(sandboxes: E2BLocal, tmp_path: Path) -> None:
    """Interrupt, restart the server, answer from a new client: the same sandbox finishes the repair."""
    env = {"MODEL": "scripted:repair", "DEPLOYMENT": "restart", **sandboxes.env}
    async with DevServer(ROOT / "langgraph.json", tmp_path, env=env) as server:
        async with get_client(url=server.url) as client:
            thread_id, interrupt = await to_the_question(client, bundled_project())
        (before,) = await alive(sandboxes, thread=thread_id)
        await server.restart()
        used = set()
        async with get_client(url=server.url) as client:
            (pending,) = (await client.threads.get_state(thread_id))["interrupts"]
            assert (pending["id"], pending["value"]) == (interrupt["id"], interrupt["value"])
            async for part in client.runs.stream(
                thread_id,
                "plan_execute",
                command={"resume": {pending["id"]: APPROVE}},
                context=CONTEXT,
                stream_mode=["custom", "values"],
            ):
                if part.event == "custom" and part.data["type"] == "sandbox":
                    used.add((part.data["event"], part.data["sandbox_id"]))
                elif part.event == "values":
                    state = part.data
        assert state["status"] == "passed"
        assert used == {("connected", before.sandbox_id)}
        assert await alive(sandboxes, thread=thread_id) == []
        server.assert_no_blocking_errors()
