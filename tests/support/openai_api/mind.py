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
    calls = [
        Call(str(call["id"]), call["name"], json.dumps(call["args"], ensure_ascii=False))
        for call in message.tool_calls
        if call["name"] != schema
    ]
    structured = [call for call in message.tool_calls if call["name"] == schema]
    text, refusal = str(message.text), ""
    if structured:
        text = json.dumps(structured[0]["args"], ensure_ascii=False)
    elif schema and not calls:
        text, refusal = "", text
    usage = message.usage_metadata
    return Reply(
        text,
        refusal,
        tuple(calls if question.parallel else calls[:1]),
        usage["input_tokens"] if usage else 0,
        usage["output_tokens"] if usage else 0,
    )
