"""What the server writes is what the client's own types demand, field by field."""

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from support.openai_api.clients import post
from support.openai_server import OpenAIServer

TOOL = {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "name": "Person", "schema": SCHEMA, "strict": True}
RESPONSES: dict[str, dict[str, Any]] = {
    "text": {"input": "hello"},
    "calls": {"input": "Do the sums", "tools": [TOOL]},
    "schema": {"input": "Who is Ada?", "text": {"format": FORMAT}},
    "refusal": {"input": "Who is Bob?", "text": {"format": FORMAT}},
}
LEAST = {
    "text": ["response.output_text.delta", "response.output_text.done"],
    "calls": ["response.function_call_arguments.delta", "response.function_call_arguments.done"],
    "schema": ["response.reasoning_summary_part.added", "response.output_text.delta"],
    "refusal": ["response.refusal.delta", "response.refusal.done"],
}


@pytest.mark.parametrize("name", list(RESPONSES))
def test_a_response_fits_its_type(openai: OpenAIServer, name: str) -> None:
    """The JSON of a response validates, and begins with the reasoning."""
    body = post(openai, "responses", _request(name)).json()
    assert Response.model_validate(body).output[0].type == "reasoning"


@pytest.mark.parametrize("name", list(RESPONSES))
def test_every_event_fits_its_type(openai: OpenAIServer, name: str) -> None:
    """Each event validates and is numbered; the last one holds the whole response."""
    text = post(openai, "responses", {**_request(name), "stream": True}).text
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    kinds = [adapter.validate_python(event).type for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert set(LEAST[name]) < set(kinds)
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == events[-1]["response"]["output"]


@pytest.mark.parametrize("name", list(RESPONSES))
def test_a_completion_fits_its_type(openai: OpenAIServer, name: str) -> None:
    """The JSON of a chat completion validates."""
    body = post(openai, "chat/completions", _chat(name)).json()
    choice = ChatCompletion.model_validate(body).choices[0]
    assert choice.finish_reason == ("tool_calls" if name == "calls" else "stop")


@pytest.mark.parametrize("name", list(RESPONSES))
def test_every_chunk_fits_its_type(openai: OpenAIServer, name: str) -> None:
    """Each chunk validates; usage comes last and alone, then the stream says that it is done."""
    request = {**_chat(name), "stream": True, "stream_options": {"include_usage": True}}
    lines = [line[6:] for line in post(openai, "chat/completions", request).text.splitlines() if line]
    chunks = [ChatCompletionChunk.model_validate_json(line) for line in lines[:-1]]
    assert lines[-1] == "[DONE]"
    assert not chunks[-1].choices
    assert chunks[-1].usage
    assert not any(chunk.usage for chunk in chunks[:-1])


def _request(name: str) -> dict[str, Any]:
    reasoning = {"effort": "high", "summary": "auto"}
    return {"model": "gpt-5.6-luna", "reasoning": reasoning, **RESPONSES[name]}


def _chat(name: str) -> dict[str, Any]:
    sent = RESPONSES[name]
    body: dict[str, Any] = {"model": "gpt-4.1", "messages": [{"role": "user", "content": sent["input"]}]}
    if "tools" in sent:
        body["tools"] = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
    if "text" in sent:
        schema = {key: FORMAT[key] for key in ("name", "schema", "strict")}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body
