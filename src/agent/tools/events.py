"""What clients see of a tool call while it runs, as events of the `custom` stream."""

from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from agent.sandbox.provider import OutputHandler


def output_events(runtime: Any, name: str) -> OutputHandler:
    """Return a handler that sends each piece of output on to clients."""

    async def send(stream: Literal["stdout", "stderr"], piece: str) -> None:
        runtime.stream_writer(
            {
                "type": "tool",
                "event": "output",
                "name": name,
                "tool_call_id": runtime.tool_call_id,
                "stream": stream,
                "text": piece,
            }
        )

    return send


class ToolEventsMiddleware(AgentMiddleware[Any, Any, Any]):
    """Sends an event when a tool call starts and when it ends."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Any) -> ToolMessage | Command[Any]:
        """Announce the call, run it, announce its result."""
        call = request.tool_call
        common = {"type": "tool", "name": call["name"], "tool_call_id": call["id"]}
        writer = request.runtime.stream_writer
        writer(common | {"event": "start", "args": call["args"]})
        result: ToolMessage | Command[Any] = await handler(request)
        writer(common | {"event": "end", "text": result.text if isinstance(result, ToolMessage) else ""})
        return result
