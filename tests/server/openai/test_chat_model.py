"""Our own `chat_model`, from settings to the wire."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from agent.context import Context
from agent.errors import ModelError
from agent.models import ModelMiddleware, chat_model, placeholder_model
from agent.repair.plan import Plan
from agent.settings import Settings
from support.openai_server import OpenAIServer


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def settings(server: OpenAIServer, **more: str) -> Settings:
    """Settings that point at the server."""
    return Settings.from_env({**server.env, **more})


async def test_the_default_is_responses_with_high_effort(openai: OpenAIServer) -> None:
    """Without further settings a call goes through the Responses API, effort high."""
    answer = await chat_model(settings(openai)).bind_tools([add]).ainvoke("hello")
    assert answer.text == "You said: hello"
    assert openai.paths == ["/v1/responses"]
    assert openai.requests[0]["reasoning"] == {"effort": "high"}
    assert openai.requests[0]["model"] == "gpt-5.6-luna"


async def test_chat_completions_when_set(openai: OpenAIServer) -> None:
    """With the Responses API turned off, a call goes through chat completions."""
    env = {"OPENAI_USE_RESPONSES_API": "false", "MODEL": "openai:gpt-4.1"}
    answer = await chat_model(settings(openai, **env)).bind_tools([add]).ainvoke("hello")
    assert answer.text == "You said: hello"
    assert openai.paths == ["/v1/chat/completions"]
    assert "reasoning_effort" not in openai.requests[0]


async def test_an_effort_reaches_the_responses_api_alone(openai: OpenAIServer) -> None:
    """The effort set is sent to Responses; chat completions take tools with none alone."""
    await chat_model(settings(openai, OPENAI_REASONING_EFFORT="low")).ainvoke("hello")
    env = {"OPENAI_REASONING_EFFORT": "low", "OPENAI_USE_RESPONSES_API": "false"}
    await chat_model(settings(openai, **env)).ainvoke("hello")
    assert openai.requests[0]["reasoning"] == {"effort": "low"}
    assert openai.requests[1]["reasoning_effort"] == "none"


@pytest.mark.parametrize("responses_api", ["true", "false"])
async def test_an_agent_streams_through_tools(openai: OpenAIServer, responses_api: str) -> None:
    """An agent with our model middleware streams two turns, calls in parallel among them."""
    env = {"OPENAI_USE_RESPONSES_API": responses_api}
    if responses_api == "false":
        env |= {"MODEL": "openai:gpt-4.1", "OPENAI_REASONING_EFFORT": "none"}
    agent = create_agent(
        placeholder_model(),
        tools=[add],
        middleware=[ModelMiddleware(settings(openai, **env))],
        context_schema=Context,
    )
    history: list[Any] = [HumanMessage("Do the sums")]
    for text, reply in ((None, "The last one is 7."), ("and now?", "You said: and now?")):
        history += [HumanMessage(text)] if text else []
        tokens = []
        async for mode, part in agent.astream(
            {"messages": history}, context=Context(), stream_mode=["messages", "values"]
        ):
            if mode == "values":
                last = part
            else:
                tokens.append(part[0].text)
        history = last["messages"]
        assert history[-1].text == reply
        assert reply in "".join(tokens)
    assert all(request["stream"] for request in openai.requests)


def test_the_plans_schema_is_one_that_strict_mode_takes(openai: OpenAIServer) -> None:
    """The plan can be asked for as structured output: its schema is not refused."""
    structured = chat_model(settings(openai)).with_structured_output(Plan, include_raw=True)
    answer: Any = structured.invoke("hello")
    assert openai.requests[0]["text"]["format"]["strict"] is True
    assert answer["parsed"] is None
    assert "refusal" in str(answer["raw"].content)


def test_a_key_that_is_missing_stops_before_the_network(openai: OpenAIServer) -> None:
    """Without a key the model is not built, and nothing is sent."""
    with pytest.raises(ModelError, match="OPENAI_API_KEY is not set"):
        chat_model(Settings.from_env({"OPENAI_BASE_URL": openai.url}))
    assert openai.requests == []
