"""What a client of the server writes is refused before it is kept, or costs the thread nothing."""

from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from e2e.test_state_is_input import APPROVE, CHAT, question

SAY = {"messages": [{"role": "user", "content": "Run `echo approved`"}]}
WRONG = {"decisions": [{"type": "maybe"}]}


@pytest.mark.parametrize(
    "update",
    [
        {"messages": 5},
        {"messages": {"__overwrite__": 5}},
        {"messages": [{"type": "remove", "id": "not there", "content": ""}]},
        [["ask_first", []], ["ask_first", []]],
        {"approved_calls": {}},
        {"sandbox_id": {"not": "an id"}},
    ],
    ids=str,
)
async def test_thread_outlasts_what_a_client_writes(client: LangGraphClient, update: Any) -> None:
    """Beside wrong answers, and past the question: the thread can be read, asked anew and answered."""
    thread_id, _ = await question(client, "agent", SAY, CHAT)
    for more in ({"resume": WRONG}, {"resume": WRONG}, {}):
        command: Any = {"update": update, **more}
        await client.runs.wait(thread_id, "agent", command=command, context=CHAT, raise_error=False)
    await client.threads.get_state(thread_id)
    await client.threads.get_history(thread_id)
    await client.runs.wait(thread_id, "agent", input=SAY, context=CHAT)
    (asked,) = (await client.threads.get_state(thread_id))["interrupts"]
    answer: Any = {"resume": {asked["id"]: APPROVE}}
    values: Any = await client.runs.wait(thread_id, "agent", command=answer, context=CHAT)
    said = [message["content"] for message in values["messages"] if message["type"] == "tool"]
    assert "approved" in said[-1]
    assert values["messages"][-1]["type"] == "ai"


async def test_refused_command_says_why(client: LangGraphClient) -> None:
    """The error names what was wrong, and the question stays open."""
    thread_id, asked = await question(client, "agent", SAY, CHAT)
    command: Any = {"resume": {asked["id"]: APPROVE}, "update": {"messages": 5}}
    answer: Any = await client.runs.wait(thread_id, "agent", command=command, context=CHAT, raise_error=False)
    assert answer["__error__"]["error"] == "InputError"
    assert answer["__error__"]["message"].startswith("command.update: `messages` cannot be used")
    assert [one["id"] for one in (await client.threads.get_state(thread_id))["interrupts"]] == [asked["id"]]
