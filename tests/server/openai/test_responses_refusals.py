"""What `/v1/responses` refuses, and in which words."""

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
TOOL = {"type": "function", "name": "add", "parameters": {"type": "object"}}


def call(call_id: str, **more: Any) -> Body:
    """A call of the model."""
    return {"type": "function_call", "call_id": call_id, "name": "add", "arguments": "{}", **more}


def output(call_id: str, value: Any = "3") -> Body:
    """A call's answer."""
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def parts(role: str, **part: Any) -> Body:
    """A message with one part."""
    return {"type": "message", "role": role, "content": [part]}


INPUTS = {
    "unanswered": (
        [USER, call("c1"), call("c2"), output("c1")],
        "No tool output found for function call c2.",
    ),
    "answer without a call": (
        [USER, output("c1")],
        "No tool call found for function call output with call_id c1.",
    ),
    "same id twice": ([USER, call("c1"), call("c1"), output("c1")], "Duplicate call_id"),
    "same item twice": (
        [USER, call("c1", id="fc_1"), output("c1"), call("c2", id="fc_1"), output("c2")],
        "Duplicate item found with id fc_1.",
    ),
    "another's id": ([USER, call("c1", id="c1"), output("c1")], "Expected an ID that begins with 'fc'"),
    "long id": (
        [USER, call("c" * 65), output("c" * 65)],
        "maximum length 64, but got a string with length 65",
    ),
    "unknown reasoning": (
        [USER, {"type": "reasoning", "id": "rs_1", "summary": []}],
        "Item with id 'rs_1' not found.",
    ),
    "chat's image part": (
        [parts("user", type="image_url", image_url={"url": PNG})],
        "Invalid value: 'image_url'. Supported values are: 'input_text', 'input_image'",
    ),
    "chat's image part from a tool": (
        [USER, call("c1"), output("c1", [{"type": "image_url", "image_url": {"url": PNG}}])],
        "Invalid value: 'image_url'. Supported values are: 'input_text', 'input_image'",
    ),
    "image without an address": (
        [parts("user", type="input_image", image_url="iVBO")],
        "Expected a valid URL",
    ),
    "image of other bytes": (
        [USER, call("c1"), output("c1", [{"type": "input_image", "image_url": PNG.replace("iVBO", "AAAA")}])],
        "does not represent a valid image",
    ),
    "image that is an object": (
        [parts("user", type="input_image", image_url={"url": PNG})],
        "Invalid type for 'input[0].content[0].image_url': expected a string, but got an object",
    ),
    "input of the assistant": (
        [parts("assistant", type="input_text", text="hi")],
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'",
    ),
    "unknown item": ([{"type": "dream"}], "Invalid value: 'dream'"),
    "unknown role": ([{"role": "narrator", "content": "hi"}], "Invalid value: 'narrator'"),
    "unknown key": (
        [parts("user", type="input_text", text="hi", index=0)],
        "Unknown parameter: 'input[0].content[0].index'",
    ),
    "output that is an object": (
        [USER, call("c1"), output("c1", {"sum": 3})],
        "Invalid type for 'input[2].output'",
    ),
}
OPTIONS = {
    "unknown option": ({"stop": ["."]}, "Unknown parameter: 'stop'"),
    "unknown model": ({"model": "llama"}, "The model `llama` does not exist"),
    "unknown effort": ({"reasoning": {"effort": "turbo"}}, "Invalid value: 'turbo'"),
    "effort without reasoning": (
        {"model": "gpt-4.1", "reasoning": {"effort": "high"}},
        "'reasoning.effort' is not supported",
    ),
    "temperature of a reasoner": ({"temperature": 0.5}, "'temperature' is not supported"),
    "too few tokens": ({"max_output_tokens": 5}, "Expected a value >= 16, but got 5"),
    "unknown response": ({"previous_response_id": "resp_1"}, "Previous response with id 'resp_1' not found."),
    "choice of another": (
        {"tools": [TOOL], "tool_choice": {"type": "function", "name": "sub"}},
        "not found in 'tools' parameter",
    ),
    "chat's tool": (
        {"tools": [{"type": "function", "function": {"name": "add"}}]},
        "parameter: 'tools[0].name'",
    ),
    "open schema of a tool": (
        {"tools": [{**TOOL, "strict": True, "parameters": {"type": "object", "properties": {}}}]},
        "Invalid schema for function 'add': In context=(), 'additionalProperties' is required",
    ),
    "schema with a default": (
        {
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "P",
                    "strict": True,
                    "schema": {
                        "type": "object",
                        "properties": {"a": {"type": "string", "default": "x"}},
                        "required": ["a"],
                        "additionalProperties": False,
                    },
                }
            }
        },
        "In context=('properties', 'a'), 'default' is not permitted.",
    ),
}


@pytest.mark.parametrize(("items", "words"), INPUTS.values(), ids=INPUTS)
def test_a_broken_input_is_refused(openai: OpenAIServer, items: list[Body], words: str) -> None:
    """An input the service does not take is refused, and never reaches the model."""
    refused(openai, {"model": "gpt-5.6-luna", "input": items}, words)


@pytest.mark.parametrize(("options", "words"), OPTIONS.values(), ids=OPTIONS)
def test_a_wrong_option_is_refused(openai: OpenAIServer, options: Body, words: str) -> None:
    """An option the service does not take is named in the error."""
    refused(openai, {"model": "gpt-5.6-luna", "input": "hi", **options}, words)


def refused(server: OpenAIServer, body: Body, words: str) -> None:
    """Assert that a request is refused in the API's error shape."""
    answer = post(server, "responses", body)
    error = answer.json()["error"]
    assert words in error["message"]
    assert answer.status_code == (404 if "not exist" in error["message"] or "rs_1" in words else 400)
    assert (error["type"], set(error)) == ("invalid_request_error", {"message", "type", "param", "code"})


def test_a_wrong_key_is_refused(openai: OpenAIServer) -> None:
    """The real client raises its error for a refused key."""
    with pytest.raises(openai_sdk.AuthenticationError, match="Incorrect API key provided: sk-"):
        client(openai, "responses", api_key="sk-another").invoke("hi")


async def test_the_client_sees_a_bad_request(openai: OpenAIServer) -> None:
    """The real client, given a call without an answer, raises its own error; streaming too."""
    history = [HumanMessage("hi"), AIMessage("", tool_calls=[ToolCall(name="add", args={}, id="c1")])]
    model = client(openai, "responses")
    with pytest.raises(openai_sdk.BadRequestError, match="No tool output found for function call c1"):
        await model.ainvoke(history)
    with pytest.raises(openai_sdk.BadRequestError, match="No tool output found for function call c1"):
        [chunk async for chunk in model.astream(history)]


def test_a_tools_image_passes(openai: OpenAIServer) -> None:
    """Unlike chat completions, this API takes an image from a tool, as the client writes it."""
    block: Body = {"type": "image", "base64": PNG.partition(",")[2], "mime_type": "image/png"}
    asked = AIMessage("", tool_calls=[ToolCall(name="add", args={}, id="c1")])
    answer = client(openai, "responses").invoke(
        [HumanMessage("look"), asked, ToolMessage([block], tool_call_id="c1")]
    )
    assert answer.text
    sent = openai.requests[0]["input"][-1]
    assert sent["output"] == [{"type": "input_image", "image_url": PNG}]
