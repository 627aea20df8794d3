"""What both APIs have in common: a question put to the scripted model, and its reply."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from support.openai_api.errors import ApiError


@dataclass(frozen=True)
class Question:
    """A request, whichever API it came by.

    `tools` are in chat completions' form. `choice` is auto, none, required or a tool's name. `output` is the
    JSON schema of a structured answer, with its name, or None.
    """

    messages: list[BaseMessage]
    tools: list[dict[str, Any]] = field(default_factory=list)
    choice: str = "auto"
    parallel: bool = True
    output: tuple[str, dict[str, Any]] | None = None


@dataclass(frozen=True)
class Call:
    """A tool call; `arguments` is JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """The answer: a text or a refusal, and calls; what it cost in tokens."""

    text: str
    refusal: str
    calls: tuple[Call, ...]
    tokens_in: int
    tokens_out: int
    stop: str = ""
    """Why it ended early: `length` or `content_filter`; empty at its end."""
    breaks_off: bool = False
    """Whether the stream ends before the event that ends an answer."""

    @property
    def pieces(self) -> list[str]:
        """The text or refusal as it is streamed."""
        return pieces(self.text or self.refusal)


def pieces(text: str) -> list[str]:
    """Cut a text into what streams as tokens: words with the space after them."""
    return re.findall(r"\s*\S+\s?|\s+", text)


def argument_pieces(arguments: str) -> list[str]:
    """Cut a call's arguments as they are streamed, in a hundred pieces at most."""
    size = max(8, len(arguments) // 100)
    return [arguments[start : start + size] for start in range(0, len(arguments), size)]


async def ask(model: BaseChatModel, question: Question) -> Reply:
    """Ask the scripted model.

    What is out of the ordinary stands in its message's `additional_kwargs["wire"]`: the `arguments` of its
    calls as they are written, a `refusal`, why it `stop`s, and whether its stream `breaks_off`.

    A structured answer is offered to its script as a tool with the schema's name, as langchain's own
    `with_structured_output` does; the call's arguments become the text. A text where a schema was asked for
    is a refusal: the API has no other way to say something else.

    Raises:
        ApiError: a call was required and the script has none; no such error exists at OpenAI.
    """
    tools = [] if question.choice == "none" else list(question.tools)
    forced = None if question.choice in ("auto", "none", "required") else question.choice
    if question.output:
        name, schema = question.output
        tools.append({"type": "function", "function": {"name": name, "parameters": schema}})
    bound = model.bind_tools(tools, tool_choice=forced) if tools else model
    message = await bound.ainvoke(question.messages)
    assert isinstance(message, AIMessage)
    if not message.tool_calls and (forced or question.choice == "required"):
        raise ApiError(f"The scripted model was made to call a tool and says instead: {message.text}")
    return _reply(message, question)


def _reply(message: AIMessage, question: Question) -> Reply:
    schema = question.output[0] if question.output else None
    wire = message.additional_kwargs.get("wire", {})
    sent = [json.dumps(call["args"]) for call in message.tool_calls]
    calls = [
        Call(str(call["id"]), call["name"], arguments)
        for call, arguments in zip(message.tool_calls, wire.get("arguments", sent), strict=True)
        if call["name"] != schema
    ]
    structured = [call for call in message.tool_calls if call["name"] == schema]
    text, refusal = str(message.text), wire.get("refusal", "")
    if structured:
        text = wire.get("arguments", [json.dumps(structured[0]["args"])])[0]
    elif schema and not calls and not wire:
        text, refusal = "", text
    usage = message.usage_metadata
    return Reply(
        text,
        refusal,
        tuple(calls if question.parallel else calls[:1]),
        usage["input_tokens"] if usage else 0,
        usage["output_tokens"] if usage else 0,
        wire.get("stop", ""),
        wire.get("breaks_off", False),
    )
