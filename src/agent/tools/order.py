"""The model's order among the calls of one message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call stands among the calls of one tool in its message; names of calls that no others have."""

    own: str
    after: Sequence[str] = ()
    """The calls before it, in order."""


def place_of(runtime: Any, name: str) -> Place:
    """Return a call's place: LangGraph runs the calls of a message at once, and leaves their order to tools.

    Args:
        runtime: a tool's `ToolRuntime`; in a graph whose state holds no messages there is no order.
        name: the tool's.
    """
    call_id = runtime.tool_call_id or ""
    messages = _messages(runtime.state)
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        ids = [call["id"] or "" for call in calls if call["name"] == name]
        if call_id in ids:
            # Some models number the calls of each message anew.
            names = [f"{message.id or index}/{each}" for each in ids]
            place = ids.index(call_id)
            return Place(names[place], names[:place])
    return Place(call_id)


def _messages(state: Any) -> Sequence[Any]:
    if isinstance(state, Mapping):
        state = state.get("messages", [])
    elif not isinstance(state, list):
        state = getattr(state, "messages", [])
    return state if isinstance(state, list) else []
