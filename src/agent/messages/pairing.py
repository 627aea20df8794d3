"""Repairing a conversation in which calls and results do not belong together.

A cancelled run leaves calls unanswered, and so does a new message that is sent instead of the answer to a
question. Providers refuse such a history; each call needs exactly one answer, right behind it.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from agent.messages.texts import well_formed, well_formed_deeply

INTERRUPTED = (
    "error: this call was cut short or never ran, and its outcome is unknown. Look at the state of things "
    "before you do it again."
)
UNREADABLE = "error: the arguments of this call were no JSON object: it was not run."

MAX_ID_CHARS = 40
"""Of a call's id, as the strictest of the large providers takes it."""
MAX_NAME_CHARS = 64


def repaired(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the conversation with one answer to each tool call, right behind the message that made it.

    Answers that are there are kept, and moved where they stand elsewhere; a missing one says that the outcome
    is unknown, or that the call could not be read; one that answers no call is left out. Calls without an id,
    with one that is too long, and a second one of the same id get ids of their own: a client may have written
    such, and providers refuse them.
    """
    answers: defaultdict[str, list[ToolMessage]] = defaultdict(list)
    for message in messages:
        if isinstance(message, ToolMessage):
            answers[message.tool_call_id].append(message)
    result: list[AnyMessage] = []
    used: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AIMessage):
            result.append(message)
            continue
        sendable, unreadable = _sendable(message, used)
        result.append(sendable)
        was = [call["id"] or "" for call in [*message.tool_calls, *message.invalid_tool_calls]]
        for number, (call, old) in enumerate(zip(sendable.tool_calls, was, strict=True)):
            words = UNREADABLE if number >= unreadable else INTERRUPTED
            answer = answers[old].pop(0) if answers[old] else _missing(call, words)
            same = answer.tool_call_id == call["id"]
            result.append(answer if same else answer.model_copy(update={"tool_call_id": call["id"]}))
    return result


def _sendable(message: AIMessage, used: set[str]) -> tuple[AIMessage, int]:
    """Return the message with calls that providers take, and how many of them could be read."""
    calls = [_call(call["name"], call["args"], call["id"]) for call in message.tool_calls]
    # langchain puts here what it could not read; as calls they can be answered.
    calls += [_call(call["name"] or "", {}, call["id"]) for call in message.invalid_tool_calls]
    for call in calls:
        call["id"] = _unused(call["id"] or "", used)
    readable = len(message.tool_calls)
    if len(calls) == readable and all(
        (new["name"], new["args"], new["id"]) == (old["name"], old["args"], old["id"])
        for new, old in zip(calls, message.tool_calls, strict=True)
    ):
        return message, readable
    # Its text alone: a provider's own blocks name the calls too, as they were.
    return AIMessage(message.text, tool_calls=calls, id=message.id, name=message.name), readable


def _call(name: str, args: object, call_id: str | None) -> ToolCall:
    return ToolCall(
        name=called(name), args=well_formed_deeply(args) if isinstance(args, dict) else {}, id=call_id
    )


def called(name: str) -> str:
    """Return a tool's name as providers take one; models make up others."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:MAX_NAME_CHARS] or "unnamed"


def _unused(call_id: str, used: set[str]) -> str:
    """Return the id, or one made from it that no call has yet."""
    # The halves of a pair are part of no id that a provider takes.
    call_id = well_formed(call_id)
    if len(call_id) > MAX_ID_CHARS:
        call_id = f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:24]}"
    name, number = call_id, 1
    while not name or name in used:
        number += 1
        name = f"{(call_id or 'call')[: MAX_ID_CHARS - 8]}-{number}"
    used.add(name)
    return name


def _missing(call: ToolCall, words: str) -> ToolMessage:
    return ToolMessage(words, tool_call_id=call["id"] or "", name=call["name"], status="error")
