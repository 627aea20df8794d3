"""Repairing a conversation in which tool calls were left without an answer.

A cancelled run leaves calls unanswered, and so does a new message that is sent instead of the answer to a
question. Providers refuse such a history; each call needs exactly one answer, right behind it.
"""

from collections import defaultdict
from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

INTERRUPTED = (
    "error: this call was cut short or never ran, and its outcome is unknown. Look at the state of things "
    "before you do it again."
)


def repaired(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the conversation with one answer to each tool call, right behind the message that made it.

    Answers that are there are kept, and moved where they stand elsewhere; a missing one says that the outcome
    is unknown; one that answers no call is left out. Calls without an id, and a second one of the same id,
    get ids of their own: a client may have written such, and providers refuse them.
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
        given = [call["id"] or "" for call in message.tool_calls]
        ids = [_unused(call_id, used) for call_id in given]
        result.append(message if ids == given else _renamed(message, ids))
        for call, was, call_id in zip(message.tool_calls, given, ids, strict=True):
            answer = answers[was].pop(0) if answers[was] else _missing(call["name"], call_id)
            same = answer.tool_call_id == call_id
            result.append(answer if same else answer.model_copy(update={"tool_call_id": call_id}))
    return result


def _unused(call_id: str, used: set[str]) -> str:
    """Return the id, or one made from it that no call has yet."""
    name, number = call_id, 1
    while not name or name in used:
        number += 1
        name = f"{call_id or 'call'}-{number}"
    used.add(name)
    return name


def _renamed(message: AIMessage, ids: Sequence[str]) -> AIMessage:
    # Its text alone: a provider's own blocks name the calls too, by their old ids.
    calls = [ToolCall(**{**call, "id": new}) for call, new in zip(message.tool_calls, ids, strict=True)]
    return AIMessage(message.text, tool_calls=calls, id=message.id, name=message.name)


def _missing(name: str, call_id: str) -> ToolMessage:
    return ToolMessage(INTERRUPTED, tool_call_id=call_id, name=name, status="error")
