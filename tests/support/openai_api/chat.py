"""`/v1/chat/completions`: what a request must be, the question in it, and how an answer is written."""

import re
import time
import uuid
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import convert_to_messages
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)

from support.openai_api import catalog
from support.openai_api.errors import ApiError, check_name, empty_array, too_long
from support.openai_api.images import check_file, check_image
from support.openai_api.mind import Question, Reply, argument_pieces
from support.openai_api.schemas import check_strict
from support.openai_api.shapes import check

Body = dict[str, Any]
MAX_CALL_ID = 40
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SAMPLING = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "logit_bias",
    "stop",
    "max_tokens",
)


def check_request(body: Body) -> None:
    """Refuse a request that the API refuses.

    Raises:
        ApiError: the first thing that is wrong.
    """
    _check_images_are_the_users(body)
    params = CompletionCreateParamsStreaming if body.get("stream") else CompletionCreateParamsNonStreaming
    check(body, params, "")
    catalog.check_known(body["model"])
    catalog.check_effort(body["model"], body.get("reasoning_effort"), "reasoning_effort")
    catalog.check_sampling(body, body.get("reasoning_effort"), SAMPLING)
    catalog.check_tools_with_effort(body)
    _check_options(body)
    _check_tools(body)
    _check_contents(body["messages"])
    _check_calls(body["messages"])


def _check_images_are_the_users(body: Body) -> None:
    """Before the shapes: the service has a sentence of its own for the commonest mistake."""
    for index, message in enumerate(_objects(body.get("messages"))):
        parts = [part.get("type") for part in _objects(message.get("content"))]
        if message.get("role") in ("tool", "assistant", "system", "developer") and "image_url" in parts:
            raise ApiError(
                f"Invalid 'messages[{index}]'. Image URLs are only allowed for messages with role 'user', "
                f"but this message with role '{message['role']}' contains an image URL.",
                param=f"messages[{index}]",
                code="invalid_value",
            )


def _objects(value: Any) -> list[Body]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _check_options(body: Body) -> None:
    if body.get("stream_options") is not None and not body.get("stream"):
        raise ApiError(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
        )
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.get(name) not in (None, "none") and not body.get("tools"):
            raise ApiError(
                f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.",
                param=name,
            )
    output = body.get("response_format") or {"type": "text"}
    if output["type"] == "json_object" and "json" not in str(body["messages"]).lower():
        raise ApiError(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type "
            "'json_object'.",
            param="messages",
        )
    if output["type"] == "json_schema" and output["json_schema"].get("strict"):
        schema = output["json_schema"]
        check_strict(
            schema.get("schema"), f"response_format '{schema['name']}'", param="response_format", code=None
        )


def _check_tools(body: Body) -> None:
    if body.get("tools") == []:
        raise empty_array("tools")
    for index, tool in enumerate(body.get("tools") or []):
        function = tool["function"]
        place = f"tools[{index}].function"
        if not TOOL_NAME.fullmatch(function["name"]):
            raise ApiError(
                f"Invalid '{place}.name': string does not match pattern. Expected a string that matches the "
                "pattern '^[a-zA-Z0-9_-]+$'.",
                param=f"{place}.name",
                code="invalid_value",
            )
        if function.get("strict"):
            check_strict(
                function.get("parameters"),
                f"function '{function['name']}'",
                param=f"{place}.parameters",
                code="invalid_function_parameters",
            )
    choice = body.get("tool_choice")
    names = [tool["function"]["name"] for tool in body.get("tools") or []]
    if isinstance(choice, dict) and choice["function"]["name"] not in names:
        raise ApiError(
            f"Invalid value for 'tool_choice': no function named '{choice['function']['name']}' was "
            "specified in the 'tools' parameter.",
            param="tool_choice",
        )


def _check_contents(messages: list[Body]) -> None:
    if not messages:
        raise empty_array("messages")
    for index, message in enumerate(messages):
        content = message.get("content")
        if content == []:
            raise empty_array(f"messages[{index}].content")
        if name := message.get("name"):
            check_name(name, f"messages[{index}].name")
        if content is None and not message.get("tool_calls"):
            raise ApiError(
                "Invalid value for 'content': expected a string, got null.",
                param=f"messages.[{index}].content",
            )
        for number, part in enumerate(_objects(content)):
            if part["type"] == "file" and "file_data" in part["file"]:
                check_file(part["file"], f"messages[{index}].content[{number}].file")
            if part["type"] == "image_url":
                check_image(part["image_url"]["url"], f"messages[{index}].content[{number}].image_url.url")


def _check_calls(messages: list[Body]) -> None:
    """Hold calls and their answers together: all answers come at once, right after the calls."""
    open_calls: dict[str, int] = {}
    answered: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            _answer(message["tool_call_id"], index, open_calls, answered)
            continue
        _refuse_open(open_calls, index)
        answered = {}
        for number, call in enumerate(message.get("tool_calls") or []):
            place = f"messages[{index}].tool_calls[{number}].id"
            check_name(call["function"]["name"], f"messages[{index}].tool_calls[{number}].function.name")
            if len(call["id"]) > MAX_CALL_ID:
                raise too_long(place, call["id"], MAX_CALL_ID)
            if call["id"] in open_calls:
                raise _duplicate(call["id"], index, index, f"messages.[{index}].tool_calls.[{number}].id")
            open_calls[call["id"]] = index
    _refuse_open(open_calls, len(messages))


def _answer(call_id: str, index: int, open_calls: dict[str, int], answered: dict[str, int]) -> None:
    if call_id in answered:
        raise _duplicate(call_id, answered[call_id], index, f"messages.[{index}].tool_call_id")
    if call_id not in open_calls:
        raise ApiError(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            "'tool_calls'.",
            param=f"messages.[{index}].role",
        )
    del open_calls[call_id]
    answered[call_id] = index


def _refuse_open(open_calls: dict[str, int], index: int) -> None:
    if open_calls:
        raise ApiError(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(open_calls),
            param=f"messages.[{index}].role",
        )


def _duplicate(call_id: str, first: int, second: int, param: str) -> ApiError:
    return ApiError(
        f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}', in messages[{first}] and "
        f"messages[{second}].",
        param=param,
    )


def question(body: Body) -> Question:
    """Return what a checked request asks."""
    choice = body.get("tool_choice") or "auto"
    output = body.get("response_format") or {"type": "text"}
    schema = output["json_schema"] if output["type"] == "json_schema" else None
    return Question(
        convert_to_messages(body["messages"]),
        tools=list(body.get("tools") or []),
        choice=choice if isinstance(choice, str) else choice["function"]["name"],
        parallel=body.get("parallel_tool_calls") is not False,
        output=(schema["name"], schema["schema"]) if schema else None,
    )


def completion(body: Body, reply: Reply) -> Body:
    """Return the response's JSON."""
    message: Body = {
        "role": "assistant",
        "content": reply.text or None,
        "refusal": reply.refusal or None,
        "annotations": [],
    }
    if reply.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in reply.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(body, reply)}
    return {**_head(body, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def chunks(body: Body, reply: Reply) -> Iterator[Body]:
    """Yield the chunks of a streamed response, without the closing `[DONE]`."""
    head = _head(body, "chat.completion.chunk")
    with_usage = (body.get("stream_options") or {}).get("include_usage", False)

    def chunk(delta: Body, finish: str | None = None) -> Body:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**head, "choices": [choice], **({"usage": None} if with_usage else {})}

    yield chunk({"role": "assistant", "content": None if reply.calls else "", "refusal": None})
    for piece in reply.pieces:
        yield chunk({"refusal" if reply.refusal else "content": piece})
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        yield chunk(
            {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}
        )
        for piece in argument_pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if reply.breaks_off:
        return
    yield chunk({}, _finish(body, reply))
    if with_usage:
        yield {**head, "choices": [], "usage": _usage(reply)}


def _head(body: Body, kind: str) -> Body:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": body["model"],
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _finish(body: Body, reply: Reply) -> str:
    if reply.stop:
        return reply.stop
    # A call that was forced by name ends with "stop": the documentation of `tool_choice` says so.
    return "tool_calls" if reply.calls and not isinstance(body.get("tool_choice"), dict) else "stop"


def _usage(reply: Reply) -> Body:
    return {
        "prompt_tokens": reply.tokens_in,
        "completion_tokens": reply.tokens_out,
        "total_tokens": reply.tokens_in + reply.tokens_out,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
