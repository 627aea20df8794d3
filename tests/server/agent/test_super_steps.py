"""How many super-steps a run takes, and that their limit is not what ends it."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from agent.context import Context
from server.agent.conftest import MakeAgent
from support.openai_server import OpenAIServer, start_openai_server
from support.scripted_rules import model_of_rules

CELL = {"tool": "run_python", "args": {"code": "print('ran')"}}
RULES = [
    {"name": "two", "when": {"human": "two rounds", "calls": {"run_python": "2+"}}, "say": "Done."},
    {"name": "many", "when": {"human": "many", "calls": {"run_python": "12+"}}, "say": "Done."},
    {"name": "cell", "call": CELL},
]


@pytest.fixture
def openai() -> Any:
    """A server of OpenAI's API."""
    with start_openai_server(model_of_rules(RULES, max_calls=500)) as server:
        yield server


def config(thread: str, **more: Any) -> Any:
    """Return the configuration of a thread."""
    return {"configurable": {"thread_id": thread}, **more}


async def test_a_round_of_the_model_and_its_tools_takes_five_super_steps(
    make_agent: MakeAgent, openai: OpenAIServer
) -> None:
    """Hooks of a kind share a node; with one before and one after the agent that is all."""
    agent = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna")
    steps = []
    asked = {"messages": [HumanMessage("two rounds")]}
    async for part in agent.astream(asked, config("steps"), context=Context(), stream_mode="updates"):
        steps += part.keys()
    before, after = steps.index("model") - 1, len(steps) - 1 - steps[::-1].index("model")
    rounds = steps[before:after]
    assert rounds.count("tools") == 2
    assert len(rounds) <= 2 * 5 + 1
    assert len(steps) < 25


@pytest.mark.parametrize("recursion_limit", [1, 5, 25])
async def test_a_callers_recursion_limit_does_not_end_a_run(
    make_agent: MakeAgent, openai: OpenAIServer, recursion_limit: int
) -> None:
    """Twelve rounds go on under any; what bounds a run is MAX_MODEL_CALLS."""
    agent = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna")
    asked = {"messages": [HumanMessage("many")]}
    limited = config(f"limit-{recursion_limit}", recursion_limit=recursion_limit)
    state = await agent.ainvoke(asked, limited, context=Context())
    assert sum(isinstance(message, ToolMessage) for message in state["messages"]) == 12
    assert state["messages"][-1].text == "Done."
    bounded = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna", MAX_MODEL_CALLS="3")
    state = await bounded.ainvoke(asked, config("bounded", recursion_limit=9), context=Context())
    assert "Model call limits exceeded" in state["messages"][-1].text


async def test_events_are_streamed_to_the_end(make_agent: MakeAgent, openai: OpenAIServer) -> None:
    """langchain's events, which set a recursion limit of 25 where nobody gave one."""
    agent = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna")
    asked = {"messages": [HumanMessage("many")]}
    ended = []
    async for event in agent.astream_events(asked, config("events"), context=Context(), version="v2"):
        if event["event"] == "on_tool_end":
            ended.append(event["name"])
    state = (await agent.aget_state(config("events"))).values
    assert state["messages"][-1].text == "Done."
    assert ended.count("run_python") == 12
