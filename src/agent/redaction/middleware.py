"""One place that all of an agent's tools pass: what they return, and what they stream."""

import asyncio
import dataclasses
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from agent.redaction.secrets import Pieces, Secrets
from agent.tools.messages import each_message


class RedactionMiddleware(AgentMiddleware[Any, Any, Any]):
    """Takes known secrets out of tool messages, their artifacts and every custom event of a tool call.

    List it before all middleware that streams or keeps what a tool returned.

    Args:
        secrets: what to take out.
    """

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Any) -> ToolMessage | Command[Any]:
        """Run the tool with a stream that redacts, and redact its result."""
        events = _Events(self._secrets, request.runtime.stream_writer)
        runtime = dataclasses.replace(request.runtime, stream_writer=events.write)
        try:
            result: ToolMessage | Command[Any] = await handler(dataclasses.replace(request, runtime=runtime))
        finally:
            events.end()
        return await each_message(result, self._redacted)

    async def _redacted(self, message: ToolMessage) -> ToolMessage:
        said = [message.content, message.artifact]
        content, artifact = await asyncio.to_thread(self._secrets.redacted_deeply, said)
        return message.model_copy(update={"content": content, "artifact": artifact})


class _Events:
    """The custom events of one tool call."""

    def __init__(self, secrets: Secrets, write: Any) -> None:
        self._secrets = secrets
        self._write = write
        self._streams: dict[str, tuple[Pieces, dict[str, Any]]] = {}

    def write(self, event: Any) -> None:
        """Send an event on; the end of a piece of output may wait for the next piece."""
        kind = event.get("event") if isinstance(event, dict) else None
        if kind == "output" and isinstance(event.get("text"), str):
            pieces, _ = self._streams.setdefault(str(event.get("stream")), (Pieces(self._secrets), event))
            if text := pieces.feed(event["text"]):
                self._write(event | {"text": text})
            return
        # Only the call's end shows what waits: a heartbeat may come between two halves of a value.
        if kind == "end":
            self.end()
        self._write(self._secrets.redacted_deeply(event))

    def end(self) -> None:
        """Show what was held back."""
        for pieces, event in self._streams.values():
            if text := pieces.end():
                self._write(event | {"text": text})
        self._streams.clear()
