"""Repairing a conversation in which tool calls were left without an answer.

A cancelled run leaves calls unanswered, and so does a new message that is sent instead of the answer to a
question. Providers refuse such a history; each call needs exactly one answer, right behind it.
"""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

INTERRUPTED = (
    "error: this call was cut short or never ran, and its outcome is unknown. Look at the state of things "
    "before you do it again."
)


def repaired(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the conversation with one answer to each tool call, right behind the message that made it.

    Answers that are there are kept, and moved where they stand elsewhere; a missing one says that the outcome
    is unknown; one that answers no call is left out.
    """
    answers: dict[str, ToolMessage] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            answers.setdefault(message.tool_call_id, message)
    result: list[AnyMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            continue
        result.append(message)
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                call_id = call["id"] or ""
                result.append(answers.get(call_id) or _missing(call["name"], call_id))
    return result


def _missing(name: str, call_id: str) -> ToolMessage:
    return ToolMessage(INTERRUPTED, tool_call_id=call_id, name=name, status="error")
