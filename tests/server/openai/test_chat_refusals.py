"""What `/v1/chat/completions` refuses, and in which words."""

from typing import Any

import openai as openai_sdk
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from support.openai_api.clients import client, post
from support.openai_server import OpenAIServer

Body = dict[str, Any]
PNG = "data:image/png;base64,iVBORw0KGgo="
USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def asks(*ids: str) -> Body:
    """An assistant's message with calls."""
    calls = [{"id": i, "type": "function", "function": {"name": "add", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answers(call_id: str, content: Any = "3") -> Body:
    """A tool's message."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def image(url: str) -> Body:
    """A message of the user with an image."""
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


def strict(schema: Body) -> Body:
    """A request for a structured answer."""
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "P", "schema": schema, "strict": True},
        }
    }


HISTORIES = {
    "unanswered": ([USER, asks("c1", "c2"), answers("c1")], "did not have response messages: c2"),
    "answered too late": ([USER, asks("c1"), USER, answers("c1")], "did not have response messages: c1"),
    "answer without a call": ([USER, answers("c1")], "must be a response to a preceeding message"),
    "answered twice": (
        [USER, asks("c1"), answers("c1"), answers("c1")],
        "Duplicate value for 'tool_call_id'",
    ),
    "same id twice": ([USER, asks("c1", "c1"), answers("c1")], "Duplicate value for 'tool_call_id'"),
    "long id": (
        [USER, asks("c" * 41), answers("c" * 41)],
        "maximum length 40, but got a string with length 41",
    ),
    "image from a tool": (
        [USER, asks("c1"), answers("c1", image(PNG)["content"])],
        "Image URLs are only allowed for messages with role 'user'",
    ),
    "Responses' image part": (
        [{"role": "user", "content": [{"type": "input_image", "image_url": PNG}]}],
        "Invalid value: 'input_image'. Supported values are: 'text', 'image_url'",
    ),
    "image that is a text": (
        [{"role": "user", "content": [{"type": "image_url", "image_url": PNG}]}],
        "Invalid type for 'messages[0].content[0].image_url': expected an object, but got a string",
    ),
    "image without an address": ([image("iVBORw0KGgo=")], "Expected a valid URL"),
    "image of another kind": ([image("data:image/svg+xml;base64,AAAA")], "unsupported image"),
    "image of other bytes": ([image("data:image/png;base64,AAAA")], "does not represent a valid image"),
    "unknown part": ([{"role": "user", "content": [{"type": "table"}]}], "Invalid value: 'table'"),
    "unknown key": ([{**USER, "mood": "good"}], "Unknown parameter: 'messages[0].mood'"),
    "no role": ([{"content": "hi"}], "Missing required parameter: 'messages[0].role'"),
    "no parts": ([{"role": "user", "content": []}], "empty array"),
    "null content": ([{"role": "assistant", "content": None}], "expected a string, got null"),
}
OPTIONS = {
    "unknown option": ({"colour": "red"}, "Unknown parameter: 'colour'"),
    "unknown model": ({"model": "llama"}, "The model `llama` does not exist"),
    "unknown effort": ({"model": "gpt-5.6-luna", "reasoning_effort": "turbo"}, "Invalid value: 'turbo'"),
    "effort without reasoning": ({"reasoning_effort": "high"}, "'reasoning_effort' is not supported"),
    "effort with tools": (
        {"model": "gpt-5.6-luna", "reasoning_effort": "high", "tools": [TOOL]},
        "To use function tools, use /v1/responses or set reasoning_effort to 'none'",
    ),
    "default effort with tools": (
        {"model": "gpt-5.6-luna", "tools": [TOOL]},
        "Function tools with reasoning_effort",
    ),
    "temperature of a reasoner": (
        {"model": "gpt-5.6-luna", "temperature": 0.5},
        "'temperature' is not supported",
    ),
    "stream options": ({"stream_options": {"include_usage": True}}, "only allowed when 'stream' is enabled"),
    "no tools": ({"tools": []}, "Invalid 'tools': empty array"),
    "choice of nothing": ({"tool_choice": "auto"}, "only allowed when 'tools' are specified"),
    "choice of another": (
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "sub"}}},
        "no function named 'sub'",
    ),
    "tool's name": ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "does not match pattern"),
    "json without the word": ({"response_format": {"type": "json_object"}}, "must contain the word 'json'"),
    "open schema": (strict({"type": "object", "properties": {}}), "'additionalProperties' is required"),
    "optional field": (
        strict({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}),
        "Missing 'a'",
    ),
}


@pytest.mark.parametrize(("messages", "words"), HISTORIES.values(), ids=HISTORIES)
def test_a_broken_history_is_refused(openai: OpenAIServer, messages: list[Body], words: str) -> None:
    """A history the service does not take is a bad request, and never reaches the model."""
    refused(openai, {"model": "gpt-4.1", "messages": messages}, words)


@pytest.mark.parametrize(("options", "words"), OPTIONS.values(), ids=OPTIONS)
def test_a_wrong_option_is_refused(openai: OpenAIServer, options: Body, words: str) -> None:
    """An option the service does not take is named in the error."""
    refused(openai, {"model": "gpt-4.1", "messages": [USER], **options}, words)


def refused(server: OpenAIServer, body: Body, words: str) -> None:
    """Assert that a request is refused in the API's error shape."""
    answer = post(server, "chat/completions", body)
    error = answer.json()["error"]
    assert words in error["message"]
    assert answer.status_code == (404 if error["code"] == "model_not_found" else 400)
    assert (error["type"], set(error)) == ("invalid_request_error", {"message", "type", "param", "code"})


@pytest.mark.parametrize(
    ("key", "words"), [("", "didn't provide an API key"), ("sk-wrong", "Incorrect API key")]
)
def test_a_wrong_key_is_refused(openai: OpenAIServer, key: str, words: str) -> None:
    """Without the right key there is no answer, and nothing of a wrong one but its ends is repeated."""
    answer = post(openai, "chat/completions", {}, key=key)
    assert answer.status_code == 401
    assert words in answer.json()["error"]["message"]
    assert "sk-wrong" not in answer.text
    assert openai.requests == []


def test_the_client_sees_a_bad_request(openai: OpenAIServer) -> None:
    """The real client, given a call without an answer, raises its own error."""
    call = ToolCall(name="add", args={}, id="c1")
    with pytest.raises(openai_sdk.BadRequestError, match="did not have response messages: c1"):
        client(openai, "chat").invoke([HumanMessage("hi"), AIMessage("", tool_calls=[call])])


def test_the_client_cannot_send_a_tools_image(openai: OpenAIServer) -> None:
    """An image block in a tool's message is what the client sends on, and the service refuses."""
    call = ToolCall(name="add", args={}, id="c1")
    block: Body = {"type": "image", "base64": PNG.partition(",")[2], "mime_type": "image/png"}
    history = [HumanMessage("hi"), AIMessage("", tool_calls=[call]), ToolMessage([block], tool_call_id="c1")]
    with pytest.raises(openai_sdk.BadRequestError, match="role 'tool' contains an image URL"):
        client(openai, "chat").invoke(history)
