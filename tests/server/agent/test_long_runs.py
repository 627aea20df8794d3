"""Runs that go on and on, threads that grow, models that fail."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command

from agent import budget
from agent.context import Context
from agent.errors import ModelError
from server.agent.conftest import MakeAgent
from support.alive import alive
from support.e2b_process import E2BLocal
from support.openai_server import OpenAIServer, start_openai_server
from support.scripted_rules import model_of_rules

AGAIN = {"tool": "run_command", "args": {"command": "echo again"}}
RULES = [
    {"name": "summary", "when": {"human": "extract|summar"}, "say": "THE SUMMARY"},
    {"name": "long", "when": {"human": "talk"}, "say": "x" * 12_000},
    {"name": "two", "when": {"human": "two"}, "call": [AGAIN, AGAIN]},
    {"name": "again", "when": {"human": "again"}, "call": AGAIN},
    {"name": "bye", "say": "Bye."},
]


def config(thread: str) -> Any:
    """Return the configuration of a thread."""
    return {"configurable": {"thread_id": thread}}


@pytest.fixture
def openai() -> Any:
    """A server of OpenAI's API: it refuses a history that is not whole."""
    with start_openai_server(model_of_rules(RULES, max_calls=500)) as server:
        yield server


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"MAX_MODEL_CALLS": "3"}, "Model call limits exceeded: run limit (3/3)"),
        ({"MAX_TOOL_CALLS": "2"}, "run limit exceeded"),
    ],
    ids=["model calls", "tool calls"],
)
async def test_a_run_at_its_limit_ends_and_its_sandbox_with_it(
    make_agent: MakeAgent, openai: OpenAIServer, sandboxes: E2BLocal, limit: dict[str, str], words: str
) -> None:
    """The run ends with a sentence and no error, no sandbox is left, and the thread can go on."""
    agent = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna", **limit)
    thread = "-".join(limit)
    asked = {"messages": [HumanMessage("again")]}
    state = await agent.ainvoke(asked, config(thread), context=Context())
    assert words in state["messages"][-1].text
    assert state["sandbox_id"] == ""
    assert await alive(sandboxes, thread=thread) == []
    bye = {"messages": [HumanMessage("bye")]}
    assert (await agent.ainvoke(bye, config(thread), context=Context()))["messages"][-1].text == "Bye."


class Clock:
    """A clock for the budget alone, which a test sets."""

    def __init__(self, step_s: float = 0) -> None:
        self.now = 1000.0
        self.step_s = step_s

    def time(self) -> float:
        """Return the time, a step later at each look."""
        self.now += self.step_s
        return self.now


async def test_a_run_that_worked_too_long_ends_and_a_humans_time_is_not_counted(
    make_agent: MakeAgent, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock starts with the run, and anew with a resume; past the limit no further call is made."""
    clock = Clock()
    monkeypatch.setattr(budget, "time", clock)
    agent = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna", MAX_RUN_S="60")
    asked = {"messages": [HumanMessage("again")]}
    await agent.ainvoke(asked, config("time"), context=Context(ask_first=["run_command"]))
    clock.now += 3600
    approve = Command(resume={"decisions": [{"type": "approve"}]})
    state = await agent.ainvoke(approve, config("time"), context=Context())
    assert "__interrupt__" in state
    clock.step_s = 30
    state = await agent.ainvoke(asked, config("late"), context=Context())
    assert state["messages"][-1].text.startswith("I stopped: this run may work for 60 seconds")


async def test_a_long_thread_is_summarized_and_its_state_with_it(
    make_agent: MakeAgent, openai: OpenAIServer
) -> None:
    """Past the limit the older part is a summary, in requests and in state; calls keep their answers."""
    limits = {"MAX_CONTEXT_TOKENS": "4000", "MAX_TOOL_CALLS": "2"}
    agent = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna", **limits)
    for text in ("talk", "talk", "again", "bye"):
        asked = {"messages": [HumanMessage(text)]}
        streamed = [
            part[0].text
            async for part in agent.astream(asked, config("long"), context=Context(), stream_mode="messages")
            if isinstance(part[0], AIMessage)
        ]
    state = (await agent.aget_state(config("long"))).values
    assert "THE SUMMARY" in state["messages"][0].text
    assert state["messages"][-1].text == "Bye."
    assert "THE SUMMARY" not in "".join(streamed)
    assert sum(len(message.text) for message in state["messages"]) < 20_000


async def test_a_model_in_trouble_is_asked_again_and_a_refusal_is_named(
    make_agent: MakeAgent, openai: OpenAIServer
) -> None:
    """The client's own tries come first, then ours; a refused key is not tried again and ends the run."""
    agent = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna")
    openai.failures = [500] * 3
    asked = {"messages": [HumanMessage("bye")]}
    state = await agent.ainvoke(asked, config("trouble"), context=Context())
    assert (state["messages"][-1].text, len(openai.requests)) == ("Bye.", 4)
    wrong = make_agent(**openai.env | {"OPENAI_API_KEY": "sk-wrong-key"}, MODEL="openai:gpt-5.6-luna")
    with pytest.raises(ModelError, match=r"gpt-5\.6-luna' failed: .*Authentication.*Incorrect API key"):
        await wrong.ainvoke(asked, config("refused"), context=Context())
