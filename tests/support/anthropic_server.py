"""A local server that speaks Anthropic's Messages API, streamed and not, with a scripted model for a mind.

It stands for the providers beside OpenAI: the unmodified client (`langchain_anthropic.ChatAnthropic`) talks
to it, and it refuses what breaks a conversation at the real one: a wrong key, a call without its result
right behind it, a result without its call, an empty text, an image of another kind or malformed, an unknown
block, a conversation that begins or ends with the assistant, half of a pair of surrogates. Written after the
types of the `anthropic` package and Anthropic's documentation; not compared with the real service.

What is out of the ordinary stands in the model's `additional_kwargs["wire"]`, as for `openai_server`.
"""

import base64
import binascii
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Self

import uvicorn
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

Block = dict[str, Any]
API_KEY = "sk-ant-test-key-of-the-local-server"
SIGNATURES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff"}


class RefusedError(Exception):
    """What the API answers with status 400."""


class AnthropicServer:
    """The running server; a context manager that stops it.

    Args:
        model: answers every request; a `ScriptedChatModel`.
    """

    def __init__(self, model: BaseChatModel) -> None:
        self.requests: list[dict[str, Any]] = []
        """The bodies of the requests so far."""
        self._model = model
        self._socket = socket.create_server(("127.0.0.1", 0))
        app = Starlette(routes=[Route("/v1/messages", self._messages, methods=["POST"])])
        self._server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )

    @property
    def env(self) -> dict[str, str]:
        """The variables that point the client here."""
        host, port = self._socket.getsockname()
        return {"ANTHROPIC_BASE_URL": f"http://{host}:{port}", "ANTHROPIC_API_KEY": API_KEY}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    async def _messages(self, request: Request) -> Response:
        try:
            body = json.loads(await request.body())
            json.dumps(body, ensure_ascii=False).encode()
        except ValueError:
            return _error(400, "invalid_request_error", "The request body is not valid JSON")
        self.requests.append(body)
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.headers.get("x-api-key", bearer) != API_KEY:
            return _error(401, "authentication_error", "invalid x-api-key")
        try:
            conversation = _conversation(body)
        except RefusedError as refusal:
            return _error(400, "invalid_request_error", str(refusal))
        tools = [
            {"type": "function", "function": {"name": tool["name"], "parameters": tool["input_schema"]}}
            for tool in body.get("tools", [])
        ]
        answer = await (self._model.bind_tools(tools) if tools else self._model).ainvoke(conversation)
        assert isinstance(answer, AIMessage)
        wire = answer.additional_kwargs.get("wire", {})
        content = _content(answer)
        stops = {"length": "max_tokens", "": "tool_use" if answer.tool_calls else "end_turn"}
        message = {
            "id": f"msg_{len(self.requests)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "refusal" if wire.get("refusal") else stops[wire.get("stop", "")],
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 10},
        }
        if not body.get("stream"):
            return Response(json.dumps(message), media_type="application/json")
        events = list(_events(message, wire))
        if wire.get("breaks_off"):
            events = events[:-3]
        return StreamingResponse(_lines(events), media_type="text/event-stream")


def _content(answer: AIMessage) -> list[Block]:
    wire = answer.additional_kwargs.get("wire", {})
    content: list[Block] = []
    if thought := wire.get("thought"):
        content.append({"type": "thinking", "thinking": thought, "signature": wire.get("signature", "")})
    content += [{"type": "text", "text": answer.text}] if answer.text else []
    return content + [
        {"type": "tool_use", "id": f"toolu_{call['id']}", "name": call["name"], "input": call["args"]}
        for call in answer.tool_calls
    ]


def _events(message: Block, wire: Block) -> Iterator[Block]:
    begun = {**message, "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": begun}
    arguments = iter(wire.get("arguments", []))
    for index, block in enumerate(message["content"]):
        match block["type"]:
            case "tool_use":
                text = next(arguments, None) or json.dumps(block["input"])
                start, deltas = {**block, "input": {}}, [("input_json_delta", "partial_json", text)]
            case "thinking":
                start = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [("thinking_delta", "thinking", block["thinking"])]
                deltas += [("signature_delta", "signature", block["signature"])] if block["signature"] else []
            case _:
                start, deltas = {"type": "text", "text": ""}, [("text_delta", "text", block["text"])]
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for kind, key, text in deltas:
            for piece in re.findall(r"(?s).{1,20}", text):
                yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 10}}
    yield {"type": "message_stop"}


async def _lines(events: list[Block]) -> AsyncIterator[str]:
    for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _error(status: int, kind: str, message: str) -> JSONResponse:
    return JSONResponse({"type": "error", "error": {"type": kind, "message": message}}, status)


def _conversation(body: dict[str, Any]) -> list[BaseMessage]:
    """Check the request's messages and return them as the scripted model takes them.

    Raises:
        RefusedError: the real service would refuse them.
    """
    system = body.get("system", "")
    made: list[BaseMessage] = [SystemMessage(system)] if system else []
    open_calls: set[str] = set()
    roles = [message["role"] for message in body["messages"]]
    if not roles or roles[0] != "user" or not set(roles) <= {"user", "assistant"}:
        raise RefusedError('messages: first message must use the "user" role, others user or assistant')
    if roles[-1] != "user":
        raise RefusedError("This model does not support assistant message prefill.")
    for index, message in enumerate(body["messages"]):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            raise RefusedError(f"messages.{index}: all messages must have non-empty content")
        answered = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if open_calls - answered:
            raise RefusedError(
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after"
            )
        if answered - open_calls:
            raise RefusedError(f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks")
        if message["role"] == "assistant":
            calls = [
                {"id": block["id"], "name": block["name"], "args": block["input"]}
                for block in blocks
                if block["type"] == "tool_use"
            ]
            for block in blocks:
                if block["type"] == "thinking" and not block.get("signature"):
                    raise RefusedError(f"messages.{index}: thinking: signature: Field required")
                if block["type"] not in {"text", "tool_use", "thinking", "redacted_thinking"}:
                    raise RefusedError(f"messages.{index}: Input tag '{block['type']}' does not match")
            text = "".join(_text(block) for block in blocks if block["type"] == "text")
            made.append(AIMessage(text, tool_calls=calls))
            open_calls = {call["id"] for call in calls}
        else:
            made += [_users(block) for block in blocks]
            open_calls = set()
    if open_calls:
        raise RefusedError("the last `tool_use` ids were found without `tool_result` blocks")
    return made


def _users(block: Block) -> BaseMessage:
    match block["type"]:
        case "tool_result":
            content = block["content"]
            text = content if isinstance(content, str) else "".join(_text(part) for part in content)
            return ToolMessage(text, tool_call_id=block["tool_use_id"])
        case "image":
            source = block["source"]
            try:
                data = base64.b64decode(source["data"], validate=True)
            except binascii.Error:
                data = b""
            signature = SIGNATURES.get(source["media_type"])
            if source["type"] != "base64" or not signature or not data.startswith(signature):
                raise RefusedError("messages: image: Could not process image")
            return HumanMessage("[an image]")
        case "document":
            source = block["source"]
            if source["type"] not in {"url", "text"} and source.get("media_type") != "application/pdf":
                raise RefusedError(
                    "messages: document.source.base64.media_type: Input should be 'application/pdf'"
                )
            return HumanMessage("[a document]")
        case _:
            return HumanMessage(_text(block))


def _text(block: Block) -> str:
    if block["type"] != "text" or not block["text"].strip():
        raise RefusedError("messages: text content blocks must be non-empty")
    text: str = block["text"]
    return text
