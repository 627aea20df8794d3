"""The graph `agent`, served."""

import re
import uuid

import httpx
from e2b_code_interpreter import AsyncSandbox
from langgraph_sdk.client import LangGraphClient

from support.alive import alive
from support.e2b_process import E2BLocal
from support.langgraph_dev import DevServer


def human(text: str, **more: object) -> dict[str, object]:
    """Return run input with one message."""
    return {"messages": [{"role": "user", "content": text}], **more}


async def test_agent_answers_by_running_code(client: LangGraphClient, sandboxes: E2BLocal) -> None:
    """The answer comes from the code that ran; afterwards no id is left in state and no sandbox alive."""
    thread = await client.threads.create()
    state = await client.runs.wait(
        thread["thread_id"], "agent", input=human("How many r's are in 'strawberry'?")
    )
    tool = next(m for m in state["messages"] if m["type"] == "tool")
    assert tool["content"] == "<stdout>\n3\n</stdout>"
    assert "3" in state["messages"][-1]["content"]
    assert state["sandbox_id"] == ""
    assert await alive(sandboxes, thread=thread["thread_id"]) == []


async def test_events_are_streamed_whatever_recursion_limit_a_client_sends(client: LangGraphClient) -> None:
    """Too small a one does not end the run: what bounds it is the deployment's to say."""
    thread = await client.threads.create()
    kinds = [
        part.data["event"]
        async for part in client.runs.stream(
            thread["thread_id"],
            "agent",
            input=human("What is 17 * 23?"),
            stream_mode="events",
            config={"recursion_limit": 3},
        )
        if part.event == "events"
    ]
    assert "on_tool_end" in kinds
    state = await client.threads.get_state(thread["thread_id"])
    assert state["values"]["messages"][-1]["content"] == "17 * 23 = 391"


async def test_agent_ignores_a_sandbox_id_in_run_input(client: LangGraphClient, sandboxes: E2BLocal) -> None:
    """An id in run input is stripped: it is neither used nor announced as lost."""
    thread = await client.threads.create()
    notices = [
        part.data["event"]
        async for part in client.runs.stream(
            thread["thread_id"],
            "agent",
            input=human("What is 2 + 3?", sandbox_id="someone-elses"),
            stream_mode="custom",
        )
        if part.event == "custom" and part.data["type"] == "sandbox"
    ]
    assert notices == ["created", "ended"]


async def test_a_chart_is_opened_by_its_address_alone(client: LangGraphClient, server: DevServer) -> None:
    """The text links it, state keeps a reference, a browser gets it; no other address does."""
    thread = (await client.threads.create())["thread_id"]
    state = await client.runs.wait(thread, "agent", input=human("Plot sin(x)"))
    tool = next(m for m in state["messages"] if m["type"] == "tool")
    (entry,) = [one for one in tool["artifact"]["artifacts"] if one["mime"] == "image/png"]
    found = re.search(r"!\[image 1\]\((\S+)\)", tool["content"])
    assert found
    async with httpx.AsyncClient(trust_env=False) as browser:
        image = await browser.get(found[1])
        assert image.content.startswith(b"\x89PNG")
        assert len(image.content) == entry["size_bytes"]
        listed = (await browser.get(f"{server.url}/artifacts/{thread}")).json()
        assert {one["title"] for one in listed} == {"image 1", "chart data"}
        (again,) = [one for one in listed if one["name"] == entry["name"]]
        assert (await browser.get(again["url"])).content == image.content
        other = (await client.threads.create())["thread_id"]
        assert (await browser.get(found[1].replace(thread, other))).status_code == 403
        assert (await browser.get(f"{server.url}/artifacts/{uuid.uuid4()}")).status_code == 404
        store = await browser.post(
            f"{server.url}/store/items/search", json={"namespace_prefix": ["artifacts"]}
        )
        assert store.status_code == 404


async def test_agent_tells_clients_of_each_tool_call(client: LangGraphClient) -> None:
    """Start, output and end of a tool call arrive on the custom stream, with the call's id."""
    thread = await client.threads.create()
    events = [
        part.data
        async for part in client.runs.stream(
            thread["thread_id"], "agent", input=human("Run `echo one; exit 3`"), stream_mode="custom"
        )
        if part.event == "custom" and part.data["type"] == "tool"
    ]
    assert [event["event"] for event in events] == ["start", "output", "end"]
    assert len({event["tool_call_id"] for event in events}) == 1
    assert events[0]["args"] == {"command": "echo one; exit 3"}
    assert events[1]["text"] == "one\n"
    assert events[2]["text"].startswith("exit_code: 3")


async def test_an_assistant_can_ask_before_a_tool_runs(client: LangGraphClient, sandboxes: E2BLocal) -> None:
    """Asked once, in the front ends' shape; a wrong answer says what is expected; the right one runs it."""
    assistant = await client.assistants.create("agent", context={"ask_first": ["run_command"]})
    thread, agent = (await client.threads.create())["thread_id"], assistant["assistant_id"]
    await client.runs.wait(thread, agent, input=human("Run `echo approved`"))
    (question,) = (await client.threads.get_state(thread))["interrupts"]
    assert [action["name"] for action in question["value"]["action_requests"]] == ["run_command"]
    (info,) = await alive(sandboxes, thread=thread)
    assert info.state.value == "paused"
    for decisions, message in (([], "Answer with 1 decision"), ([{"type": "approve"}], None)):
        answer = {"resume": {question["id"]: {"decisions": decisions}}}
        state = await client.runs.wait(thread, agent, command=answer, raise_error=False)
        assert (message or "") in str(state.get("__error__"))
    assert "<stdout>\napproved\n</stdout>" in state["messages"][-2]["content"]
    assert await alive(sandboxes, thread=thread) == []


async def test_turns_of_one_thread_each_have_a_sandbox(client: LangGraphClient, sandboxes: E2BLocal) -> None:
    """After the first turn's sandbox was ended the second turn works, in one of its own."""
    thread = await client.threads.create()
    for question, answer in (("What is 2 + 3?", "5"), ("What is 20 + 30?", "50")):
        state = await client.runs.wait(thread["thread_id"], "agent", input=human(question))
        assert answer in state["messages"][-1]["content"]
    assert await alive(sandboxes, thread=thread["thread_id"]) == []


async def test_model_of_a_run_is_set_by_context(client: LangGraphClient) -> None:
    """Context chooses the model; one that cannot be built fails the run with one clear line."""
    thread = await client.threads.create()
    result = await client.runs.wait(
        thread["thread_id"],
        "agent",
        input=human("What is 2 + 3?"),
        context={"model": "openai:gpt-5.6-luna"},
        raise_error=False,
    )
    assert "OPENAI_API_KEY is not set" in result["__error__"]["message"]


async def test_schemas_and_drawing_hide_the_live_sandbox(client: LangGraphClient) -> None:
    """Studio shows the options of a run and neither the handle nor the id."""
    for assistant in await client.assistants.search():
        schemas = await client.assistants.get_schemas(assistant["assistant_id"])
        options = set(schemas["context_schema"]["properties"])
        assert {"model", "keep", "internet"} <= options
        assert "sandbox" not in options
        assert "sandbox_id" not in schemas["input_schema"]["properties"]
        assert (await client.assistants.get_graph(assistant["assistant_id"]))["nodes"]


async def test_a_kept_sandbox_serves_the_next_turn_and_its_loss_is_told(
    client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """keep=thread: the next turn finds the file; a sandbox killed in between is replaced and called lost."""
    thread_id = (await client.threads.create())["thread_id"]

    async def turn(text: str) -> tuple[str, list[str]]:
        notices = []
        async for part in client.runs.stream(
            thread_id,
            "agent",
            input=human(text),
            context={"keep": "thread"},
            stream_mode=["custom", "values"],
        ):
            if part.event == "custom" and part.data["type"] == "sandbox":
                notices.append(part.data["event"])
            elif part.event == "values":
                state = part.data
        return state["messages"][-1]["content"], notices

    assert (await turn("Write notes.txt: hello"))[1] == ["created", "paused"]
    answer, notices = await turn("Read notes.txt")
    assert "hello" in answer
    assert notices == ["connected", "paused"]
    (kept,) = await alive(sandboxes, thread=thread_id)
    await AsyncSandbox.kill(kept.sandbox_id, **sandboxes.options)
    answer, notices = await turn("Read notes.txt")
    assert "hello" not in answer
    assert notices == ["replaced", "paused"]
    (second,) = await alive(sandboxes, thread=thread_id)
    await AsyncSandbox.kill(second.sandbox_id, **sandboxes.options)
