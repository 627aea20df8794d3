"""The messages that a tool call came to, whatever form its result has."""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.types import Command


async def each_message(
    result: ToolMessage | Command[Any], change: Callable[[ToolMessage], Awaitable[ToolMessage]]
) -> ToolMessage | Command[Any]:
    """Return a tool call's result with each of its messages changed, in order; all else stays as it is."""
    if isinstance(result, ToolMessage):
        return await change(result)
    if isinstance(result.update, dict) and "messages" in result.update:
        messages = [
            await change(message) if isinstance(message, ToolMessage) else message
            for message in result.update["messages"]
        ]
        return dataclasses.replace(result, update=result.update | {"messages": messages})
    return result
