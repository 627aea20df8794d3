"""The agent on a provider beside OpenAI: its real client takes our conversations, charts included."""

import json

import pytest
from langchain_core.messages import HumanMessage

from agent.artifacts.images import SHOWN
from agent.context import Context
from server.agent.conftest import MakeAgent
from server.agent.test_artifacts import CELL, config
from support.anthropic_server import AnthropicServer
from support.scripted_rules import model_of_rules

RULES = [
    {"name": "seen", "when": {"human": "an image"}, "say": "I see them."},
    {
        "name": "draw",
        "when": {"human": "draw", "after": "human"},
        "say": "I draw and look around.",
        "call": [
            {"tool": "run_python", "args": {"code": CELL}},
            {"tool": "run_command", "args": {"command": "exit 3"}},
        ],
    },
    {"name": "bye", "say": "Bye."},
]


async def test_the_anthropic_client_takes_the_conversation(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls in parallel, their results and both charts arrive in that API's form; a further turn passes."""
    with AnthropicServer(model_of_rules(RULES)) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        agent = make_agent(MODEL="anthropic:claude-sonnet-5-5")
        for text in ("draw", "and now?"):
            state = await agent.ainvoke({"messages": [HumanMessage(text)]}, config("a"), context=Context())
        first, second, third = server.requests
    assert [message.text for message in state["messages"] if message.type == "ai"] == [
        "I draw and look around.",
        "I see them.",
        "Bye.",
    ]
    assert {"run_python", "read_file"} <= {tool["name"] for tool in first["tools"]}
    answered = second["messages"][-1]["content"]
    assert [block["type"] for block in answered] == ["tool_result", "tool_result", "text", "image", "image"]
    assert "exit_code: 3" in json.dumps(answered[1])
    assert answered[2]["text"] == SHOWN
    assert json.dumps(third).count('"media_type": "image/png"') == 2
