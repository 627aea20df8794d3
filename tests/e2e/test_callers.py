"""Callers that are programs: runs without a thread, tool calls by MCP, messages by A2A."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from agent.scripted.bundled import bundled_project
from support.alive import alive
from support.e2b_process import E2BLocal
from support.langgraph_dev import DevServer

REPAIR = {"model": "scripted:repair"}
UNASKED = REPAIR | {"plan_approval": "never"}
ASKING = {"model": "scripted:chat", "ask_first": ["run_command"]}
SAY = {"messages": [{"role": "user", "content": "Run `echo hello`"}]}
APPROVE = {"decisions": [{"type": "approve"}]}


@pytest.fixture
async def http(server: DevServer) -> AsyncIterator[httpx.AsyncClient]:
    """A client without an SDK."""
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as http:
        yield http


@pytest.fixture(autouse=True)
async def _leaves_nothing(sandboxes: E2BLocal) -> AsyncIterator[None]:
    before = {box.sandbox_id for box in await alive(sandboxes)}
    yield
    # What a cancelled run made is ended beside it.
    async with asyncio.timeout(20):
        while {box.sandbox_id for box in await alive(sandboxes)} - before:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def called(http: httpx.AsyncClient, name: str, arguments: Any, context: Any = None) -> Any:
    """Call a tool by MCP; return its result."""
    params = {"name": name, "arguments": arguments, "context": context}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return (await http.post("/mcp", json=body, headers={"Accept": "application/json"})).json()["result"]


async def tool(http: httpx.AsyncClient, name: str) -> Any:
    """Return what MCP says of a tool."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    listed = (await http.post("/mcp", json=body, headers={"Accept": "application/json"})).json()
    return next(one for one in listed["result"]["tools"] if one["name"] == name)


async def sent(
    http: httpx.AsyncClient, client: LangGraphClient, graph: str, parts: Any, **more: Any
) -> tuple[Any, str]:
    """Send a message by A2A; return the task and the id of the assistant."""
    (assistant,) = await client.assistants.search(graph_id=graph)
    context = more.pop("context", None)
    message = {"role": "ROLE_USER", "messageId": str(uuid.uuid4()), "parts": parts, **more}
    params = {"message": message, "context": context}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    answer = await http.post(f"/a2a/{assistant['assistant_id']}", json=body)
    return answer.json()["result"]["task"], assistant["assistant_id"]


@pytest.mark.parametrize("plan_approval", [None, "each", "first"])
async def test_repair_without_a_thread_that_would_ask_is_refused_before_a_sandbox(
    client: LangGraphClient, plan_approval: str | None
) -> None:
    """The error names the context that asks nobody, and where a question can be answered."""
    result: Any = await client.runs.wait(
        None,
        "plan_execute",
        input={"project": bundled_project()},
        context=REPAIR | {"plan_approval": plan_approval},
        raise_error=False,
    )
    error = result["__error__"]
    assert error["error"] == "InputError"
    assert "`plan_approval` set to never" in error["message"]
    assert "POST /threads" in error["message"]
    assert "`command.resume`" in error["message"]


async def test_chat_without_a_thread_that_asks_is_refused_and_its_sandbox_ended(
    client: LangGraphClient,
) -> None:
    """Nothing was run; the error says how it would be, and no sandbox is left, not even a paused one."""
    result: Any = await client.runs.wait(None, "agent", input=SAY, context=ASKING, raise_error=False)
    message = result["__error__"]["message"]
    assert "run_command was not run" in message
    assert "whose context has no `ask_first`" in message
    assert "POST /threads" in message


async def test_chat_without_a_thread_that_asks_nothing_answers(client: LangGraphClient) -> None:
    """What could ask and does not is no reason to refuse; the sandbox ends, however it is kept."""
    hello = {"messages": [{"role": "user", "content": "Compute 2 + 2"}]}
    more = {"keep": "thread"}
    result: Any = await client.runs.wait(None, "agent", input=hello, context=ASKING | more)
    assert result["messages"][-1]["type"] == "ai"


async def test_question_is_kept_where_a_run_keeps_its_thread(client: LangGraphClient) -> None:
    """With `on_completion="keep"` there is a thread, whose question can be answered."""
    run = await client.runs.create(
        None, "plan_execute", input={"project": bundled_project()}, context=REPAIR, on_completion="keep"
    )
    thread_id = run["thread_id"]
    await client.runs.join(thread_id, run["run_id"])
    (asked,) = (await client.threads.get_state(thread_id))["interrupts"]
    answer: Any = {"resume": {asked["id"]: APPROVE}}
    result: Any = await client.runs.wait(thread_id, "plan_execute", command=answer, context=REPAIR)
    assert result["status"] == "passed"


async def test_repair_gives_a_program_status_summary_and_diff(client: LangGraphClient) -> None:
    """Not the state it worked with; without a thread there is one message, and the diff once."""
    given = {"project": bundled_project()}
    result: Any = await client.runs.wait(None, "plan_execute", input=given, context=UNASKED)
    assert set(result) == {"status", "summary", "diff", "messages"}
    assert result["status"] == "passed"
    assert result["summary"].startswith("The tests pass.")
    assert [message["content"] for message in result["messages"]] == [result["summary"]]
    assert json.dumps(result).count("diff --git") == result["diff"].count("diff --git") > 0


async def test_schemas_say_what_each_key_is(client: LangGraphClient) -> None:
    """Each key of an input has a description, `limits` a shape, and the output is what programs get."""
    for graph in ("plan_execute", "agent"):
        (assistant,) = await client.assistants.search(graph_id=graph)
        schemas: Any = await client.assistants.get_schemas(assistant["assistant_id"])
        keys = schemas["input_schema"]["properties"]
        assert [name for name, key in keys.items() if not key.get("description")] == []
        keys = schemas["context_schema"]["properties"]
        assert [name for name, key in keys.items() if not key.get("description")] == []
    (assistant,) = await client.assistants.search(graph_id="plan_execute")
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    limits = schemas["input_schema"]["properties"]["limits"]["properties"]
    assert {name: (one["minimum"], one["maximum"], one["default"]) for name, one in limits.items()} == {
        "tries": (1, 10, 3),
        "steps": (1, 200, 40),
        "time_s": (10, 86_400, 3600),
    }
    shown = schemas["output_schema"]["properties"]
    assert set(shown) == {"status", "summary", "diff", "messages"}
    assert [name for name, key in shown.items() if not key.get("description")] == []


async def test_mcp_describes_the_repair_and_returns_what_came_of_it(http: httpx.AsyncClient) -> None:
    """Its keys are described, and a call that asks nobody gives the patch in a short text."""
    keys = (await tool(http, "plan_execute"))["inputSchema"]["properties"]
    assert all(key["description"] for key in keys.values())
    assert set(keys["limits"]["properties"]) == {"tries", "steps", "time_s"}
    given = {"project": bundled_project(), "limits": None, "setup_command": None}
    result = await called(http, "plan_execute", given, UNASKED)
    assert "isError" not in result
    (content,) = result["content"]
    assert "'status': 'passed'" in content["text"]
    assert "+++ b/shop/pricing.py" in content["text"]
    assert len(content["text"]) < 6_000


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "`project` is missing"),
        ({"project": {"../evil": "x"}}, "`project` has the path '../evil'"),
        ({"project": {"a": "x"}, "limits": {"tries": 99}}, "`limits` cannot be used: tries"),
        ({"project": {"a": "x"}, "test_command": 5}, "`test_command` is int; it is text"),
        ({"project": {"a": "x"}}, "`plan_approval` set to never"),
    ],
)
async def test_mcp_says_why_an_input_is_refused(http: httpx.AsyncClient, given: Any, why: str) -> None:
    """A caller that reads the result of the call learns what to change."""
    result = await called(http, "plan_execute", given, REPAIR)
    assert result["isError"] is True
    (content,) = result["content"]
    assert content["text"].startswith("InputError: ")
    assert why in content["text"]


async def test_mcp_says_why_a_call_that_asks_was_not_run(http: httpx.AsyncClient) -> None:
    """The chat agent's question, too, is one that no caller by MCP could answer."""
    result = await called(http, "agent", {"messages": "Run `echo hello`"}, ASKING)
    assert result["isError"] is True
    assert "run_command was not run" in result["content"][0]["text"]


async def test_a2a_says_why_an_input_is_refused(http: httpx.AsyncClient, client: LangGraphClient) -> None:
    """The failed task says what to change."""
    data = {"project": {"a": "x"}, "limits": {"tries": 99}}
    task, _ = await sent(http, client, "plan_execute", [{"data": data}], context=REPAIR)
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert "`limits` cannot be used: tries" in task["status"]["message"]["parts"][0]["text"]


async def test_a2a_question_is_answered_in_its_task(http: httpx.AsyncClient, client: LangGraphClient) -> None:
    """An A2A context is a thread: the question waits there, and its answer carries the plan out."""
    data = {"project": bundled_project()}
    task, _ = await sent(http, client, "plan_execute", [{"data": data}], context=REPAIR)
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    where = {"taskId": task["id"], "contextId": task["contextId"]}
    done, _ = await sent(
        http, client, "plan_execute", [{"data": {"resume": APPROVE}}], context=REPAIR, **where
    )
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    (part,) = done["artifacts"][0]["parts"]
    assert part["text"].startswith("The tests pass.")
    assert "+++ b/shop/pricing.py" in part["text"]
    assert len(json.dumps(done["artifacts"])) < 6_000


async def test_assistant_that_asks_nobody_is_a_tool_of_its_own(
    http: httpx.AsyncClient, client: LangGraphClient
) -> None:
    """What the refusal says: an assistant with that context is called by MCP without a question."""
    made = await client.assistants.create("plan_execute", name="repair unasked", context=UNASKED)
    try:
        result = await called(http, "repair_unasked", {"project": bundled_project()})
        assert "'status': 'passed'" in result["content"][0]["text"]
    finally:
        await client.assistants.delete(made["assistant_id"])


@pytest.mark.parametrize("by", ["mcp", "a2a"])
async def test_words_alone_are_answered_with_what_is_needed(
    http: httpx.AsyncClient, client: LangGraphClient, by: str
) -> None:
    """Whoever calls with a wish and no project reads what to send."""
    if by == "mcp":
        said = (await called(http, "plan_execute", {"messages": "mend it"}, REPAIR))["content"][0]["text"]
        assert "'status': 'needs_project'" in said
    else:
        task, _ = await sent(http, client, "plan_execute", [{"text": "mend it"}], context=REPAIR)
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        said = task["artifacts"][0]["parts"][0]["text"]
    assert "`project` in the input of a run" in said


async def test_stream_without_a_thread_tells_the_refusal_as_every_error(client: LangGraphClient) -> None:
    """Programs of one's own get name and message apart, from the stream too."""
    given = {"project": bundled_project()}
    parts = [part async for part in client.runs.stream(None, "plan_execute", input=given, context=REPAIR)]
    (error,) = [part.data for part in parts if part.event == "error"]
    assert error["error"] == "InputError"
    assert "`plan_approval` set to never" in error["message"]


async def test_kept_sandbox_of_a_run_without_a_thread_is_ended(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """Asked to keep it for a thread that is gone, a repair ends it, cancelled in mid-command too."""
    kept = UNASKED | {"keep": "thread"}
    green = {"project": {"a": "x"}, "test_command": "grep -q x a"}
    result: Any = await client.runs.wait(None, "plan_execute", input=green, context=kept)
    assert result["status"] == "already_green"
    slow: Any = {"project": {"a": "x"}, "test_command": "echo begun; sleep 60"}
    run: Any = await client.runs.create(None, "plan_execute", input=slow, context=kept)
    async with asyncio.timeout(60):
        while not await alive(sandboxes, run=run["run_id"]):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await client.runs.cancel(run["thread_id"], run["run_id"])
