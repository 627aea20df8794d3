"""`/v1/responses`: what a request must be, the question in it, and how an answer is written."""

import base64
import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)

from support.openai_api import catalog
from support.openai_api.errors import ApiError, check_name
from support.openai_api.history import Item, Stored, check_history, kind
from support.openai_api.images import check_file, check_image
from support.openai_api.mind import Question, Reply
from support.openai_api.schemas import check_strict
from support.openai_api.shapes import check

Body = dict[str, Any]
MIN_OUTPUT_TOKENS = 16
THOUGHT = "Thinking it through."
STOPS = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why a response is incomplete, by chat completions' word for it."""


def check_request(body: Body, stored: Stored) -> None:
    """Refuse a request that the API refuses.

    Raises:
        ApiError: the first thing that is wrong.
    """
    params = ResponseCreateParamsStreaming if body.get("stream") else ResponseCreateParamsNonStreaming
    check(body, params, "")
    for name in ("model", "input"):
        if name not in body:
            raise ApiError(
                f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter"
            )
    effort = _effort(body)
    catalog.check_known(body["model"])
    catalog.check_effort(body["model"], effort, "reasoning.effort")
    catalog.check_sampling(body, effort, ("temperature", "top_p", "top_logprobs"))
    _check_options(body)
    _check_tools(body)
    _check_images(items_of(body["input"]))
    check_history(all_items(body, stored), stored)


def items_of(sent: str | list[Item]) -> list[Item]:
    """Return a request's input as items; a text is a message of the user."""
    return [{"type": "message", "role": "user", "content": sent}] if isinstance(sent, str) else sent


def all_items(body: Body, stored: Stored) -> list[Item]:
    """Return a request's items after those of the response it continues."""
    earlier = stored.before(body["previous_response_id"]) if body.get("previous_response_id") else []
    return [*earlier, *items_of(body["input"])]


def _effort(body: Body) -> str | None:
    return (body.get("reasoning") or {}).get("effort")


def _check_options(body: Body) -> None:
    limit = body.get("max_output_tokens")
    if limit is not None and limit < MIN_OUTPUT_TOKENS:
        raise ApiError(
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= "
            f"{MIN_OUTPUT_TOKENS}, but got {limit} instead.",
            param="max_output_tokens",
            code="integer_below_min_value",
        )
    output = _format(body)
    if output["type"] == "json_object" and "json" not in str(body["input"]).lower():
        raise ApiError(
            "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
            "'json_object'.",
            param="input",
        )
    if output["type"] == "json_schema" and output.get("strict"):
        check_strict(
            output["schema"],
            f"response_format '{output['name']}'",
            param="text.format.schema",
            code="invalid_json_schema",
        )


def _check_tools(body: Body) -> None:
    tools = body.get("tools") or []
    for index, tool in enumerate(tools):
        if tool["type"] == "function" and tool.get("strict"):
            check_strict(
                tool.get("parameters"),
                f"function '{tool['name']}'",
                param=f"tools[{index}].parameters",
                code="invalid_function_parameters",
            )
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("name") not in [tool.get("name") for tool in tools]:
        raise ApiError("Tool choice 'function' not found in 'tools' parameter.", param="tool_choice")
    if choice == "required" and not tools:
        raise ApiError(
            "Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice"
        )


def _check_images(items: list[Item]) -> None:
    for index, item in enumerate(items):
        if kind(item) == "function_call":
            check_name(item["name"], f"input[{index}].name")
        for key in ("content", "output"):
            parts = item.get(key)
            for number, part in enumerate(parts if isinstance(parts, list) else []):
                if part["type"] == "input_file" and "file_data" in part:
                    check_file(part, f"input[{index}].{key}[{number}]")
                if part["type"] == "input_image" and part.get("image_url"):
                    check_image(part["image_url"], f"input[{index}].{key}[{number}].image_url")


def _format(body: Body) -> Body:
    found: Body = (body.get("text") or {}).get("format") or {"type": "text"}
    return found


def question(body: Body, stored: Stored) -> Question:
    """Return what a checked request asks."""
    output = _format(body)
    choice = body.get("tool_choice") or "auto"
    return Question(
        list(_messages(body.get("instructions"), all_items(body, stored))),
        tools=[_tool(tool) for tool in body.get("tools") or [] if tool["type"] == "function"],
        choice=choice if isinstance(choice, str) else choice["name"],
        parallel=body.get("parallel_tool_calls") is not False,
        output=(output["name"], output["schema"]) if output["type"] == "json_schema" else None,
    )


def _tool(tool: Body) -> Body:
    function = {"name": tool["name"], "description": tool.get("description") or ""}
    return {"type": "function", "function": {**function, "parameters": tool.get("parameters") or {}}}


def _messages(instructions: str | None, items: list[Item]) -> Iterator[BaseMessage]:
    """Turn items into messages; calls that stand together are one message's."""
    if instructions:
        yield SystemMessage(instructions)
    calls: list[ToolCall] = []
    for item in items:
        if kind(item) == "function_call":
            args = json.loads(item["arguments"])
            calls.append(ToolCall(name=item["name"], args=args, id=item["call_id"]))
            continue
        if calls:
            yield AIMessage("", tool_calls=calls)
            calls = []
        match kind(item), item.get("role"):
            case "function_call_output", _:
                yield ToolMessage(_content(item["output"]), tool_call_id=item["call_id"])
            case "message", "user":
                yield HumanMessage(_content(item["content"]))
            case "message", "system" | "developer":
                yield SystemMessage(_content(item["content"]))
            case "message", "assistant":
                yield AIMessage(_content(item["content"]))
    if calls:
        yield AIMessage("", tool_calls=calls)


def _content(content: str | list[Body]) -> str | list[str | dict[str, Any]]:
    if isinstance(content, str):
        return content
    parts: list[str | dict[str, Any]] = []
    for part in content:
        if "text" in part:
            parts.append({"type": "text", "text": part["text"]})
        elif part["type"] == "input_image":
            parts.append({"type": "image_url", "image_url": {"url": part.get("image_url") or ""}})
    return parts


def output_items(body: Body, reply: Reply) -> list[Item]:
    """Return the response's items: reasoning if the model reasons, then the message, then the calls."""
    items: list[Item] = []
    if catalog.reasons(body["model"]) and _effort(body) != "none":
        wanted = (body.get("reasoning") or {}).get("summary")
        items.append(
            {
                "id": _id("rs"),
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": THOUGHT}] if wanted else [],
                # Opaque to the client, as the real one is.
                "encrypted_content": base64.b64encode(uuid.uuid4().bytes * 4).decode(),
            }
        )
    thought_alone = reply.stop and not reply.text and items
    if reply.text or reply.refusal or (not reply.calls and not thought_alone):
        part: Body = (
            {"type": "refusal", "refusal": reply.refusal}
            if reply.refusal
            else {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        )
        items.append(
            {
                "id": _id("msg"),
                "type": "message",
                "role": "assistant",
                "status": "incomplete" if reply.stop else "completed",
                "content": [part],
            }
        )
    for call in reply.calls:
        items.append(
            {
                "id": _id("fc"),
                "type": "function_call",
                "status": "incomplete" if reply.stop else "completed",
                "arguments": call.arguments,
                "call_id": call.id,
                "name": call.name,
            }
        )
    return items


def response(body: Body, reply: Reply, items: list[Item]) -> Body:
    """Return the response's JSON."""
    return {
        "id": _id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if reply.stop else "completed",
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reply.stop.replace("length", "max_output_tokens")}
        if reply.stop
        else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": body.get("metadata") or {},
        "model": body["model"],
        "output": items,
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": _effort(body), "summary": (body.get("reasoning") or {}).get("summary")},
        "service_tier": "default",
        "store": body.get("store") is not False,
        "temperature": 1.0 if body.get("temperature") is None else body["temperature"],
        "text": {"format": _format(body), "verbosity": "medium"},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": _usage(reply, items),
        "user": None,
    }


def _usage(reply: Reply, items: list[Item]) -> Body:
    thought = sum(item["type"] == "reasoning" for item in items) * 64
    out = reply.tokens_out + thought
    return {
        "input_tokens": reply.tokens_in,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": out,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": reply.tokens_in + out,
    }


def _id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}{uuid.uuid4().hex[:16]}"
