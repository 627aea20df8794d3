"""Reasoning items: the client sends them back, and torn ones are refused."""

import openai as openai_sdk
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from support.openai_api.clients import client
from support.openai_server import OpenAIServer


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_reasoning_goes_back_with_its_calls(openai: OpenAIServer) -> None:
    """The second request holds the reasoning item and both calls, ids and all, in the order they came."""
    model = client(openai, "responses").bind_tools([add])
    asked = model.invoke("Do the sums")
    model.invoke([HumanMessage("Do the sums"), asked, *(add.invoke(call) for call in asked.tool_calls)])
    sent = openai.requests[1]["input"]
    assert [item.get("id", "")[:3] for item in sent[1:5]] == ["rs_", "msg", "fc_", "fc_"]
    assert "encrypted_content" in sent[1]


def test_no_reasoning_where_none_is_asked_for(openai: OpenAIServer) -> None:
    """Effort "none" and a model that does not reason give no reasoning item."""
    for options in ({"reasoning": {"effort": "none"}}, {"reasoning": None, "model": "gpt-4.1"}):
        answer = client(openai, "responses", **options).invoke("hi")
        assert [block["type"] for block in answer.content_blocks] == ["text"]


def test_a_call_without_its_reasoning_is_refused(openai: OpenAIServer) -> None:
    """Whoever drops the reasoning item from a message breaks the history."""
    model = client(openai, "responses").bind_tools([add])
    asked = model.invoke("Do the sums")
    torn = AIMessage([b for b in asked.content if b["type"] != "reasoning"], tool_calls=asked.tool_calls)  # type: ignore[index]
    history = [HumanMessage("Do the sums"), torn, *(add.invoke(call) for call in asked.tool_calls)]
    with pytest.raises(openai_sdk.BadRequestError, match="without its required 'reasoning' item: 'rs_"):
        model.invoke(history)


def test_reasoning_without_what_followed_is_refused(openai: OpenAIServer) -> None:
    """Whoever keeps only the reasoning of a message breaks the history too."""
    model = client(openai, "responses")
    answer = model.invoke("hello")
    torn = AIMessage([b for b in answer.content if b["type"] == "reasoning"])  # type: ignore[index]
    with pytest.raises(openai_sdk.BadRequestError, match="without its required following item"):
        model.invoke([HumanMessage("hello"), torn, HumanMessage("and?")])


def test_a_plain_copy_of_a_message_passes(openai: OpenAIServer) -> None:
    """Text and calls alone, without any item's id, are a history of their own and are taken."""
    model = client(openai, "responses").bind_tools([add])
    asked = model.invoke("Do the sums")
    plain = AIMessage(asked.text, tool_calls=asked.tool_calls)
    answer = model.invoke([HumanMessage("Do the sums"), plain, *(add.invoke(c) for c in asked.tool_calls)])
    assert answer.text == "The last one is 7."


def test_unstored_reasoning_comes_back_encrypted(openai: OpenAIServer) -> None:
    """With `store=False` the client sends the reasoning's encrypted content, and that is enough."""
    model = client(openai, "responses", store=False)
    answer = model.invoke("hello")
    assert model.invoke([HumanMessage("hello"), answer, HumanMessage("again")]).text == "You said: again"


def test_a_response_can_be_continued_by_id(openai: OpenAIServer) -> None:
    """`previous_response_id` stands for everything before it."""
    model = client(openai, "responses", use_previous_response_id=True).bind_tools([add])
    asked = model.invoke("Do the sums")
    answer = model.invoke([HumanMessage("Do the sums"), asked, *(add.invoke(c) for c in asked.tool_calls)])
    assert answer.text == "The last one is 7."
    assert [item["type"] for item in openai.requests[1]["input"]] == ["function_call_output"] * 2
