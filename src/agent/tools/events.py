"""What clients see of a tool call while it runs, as events of the `custom` stream."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from agent.sandbox.provider import OutputHandler
from agent.tools.messages import each_message

INTERVAL_S = 0.25
"""Output is collected for so long: a client is sent a few events a second, however fast a program prints."""
SILENCE_S = 10.0
"""After so much of it a heartbeat is sent; clients and proxies give up on quiet streams."""
MAX_EVENT_CHARS = 8_000
MAX_CALL_CHARS = 200_000
"""Of one call; after that only heartbeats come. The result says where the whole is."""


@asynccontextmanager
async def live_output(runtime: Any, name: str) -> AsyncIterator[OutputHandler]:
    """Send pieces of output on to clients while a call runs, and heartbeats while it is silent.

    Args:
        runtime: the tool's; its stream writer is used.
        name: the tool's.
    """
    live = _Live(runtime, name)
    task = asyncio.create_task(live.tick())
    try:
        yield live.take
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        live.flush()


class _Live:
    """Collects the output of one call and sends it in measure."""

    def __init__(self, runtime: Any, name: str) -> None:
        self._writer = runtime.stream_writer
        self._common = {"type": "tool", "name": name, "tool_call_id": runtime.tool_call_id}
        self._waiting: list[tuple[Literal["stdout", "stderr"], str]] = []
        self._left = MAX_CALL_CHARS
        self._started = self._sent = time.monotonic()

    async def take(self, stream: Literal["stdout", "stderr"], piece: str) -> None:
        """Take in a piece; the first after a while is sent at once."""
        if self._waiting and self._waiting[-1][0] == stream:
            piece = self._waiting.pop()[1] + piece
        # What is not sent anyway need not be kept: a burst shows its end.
        self._waiting.append((stream, piece[-2 * MAX_EVENT_CHARS :]))
        if len(self._waiting) > 100 or time.monotonic() - self._sent >= INTERVAL_S:
            self.flush()

    def flush(self) -> None:
        """Send what waits."""
        waiting, self._waiting = self._waiting, []
        for stream, piece in waiting:
            if self._left > 0:
                text = piece if len(piece) <= MAX_EVENT_CHARS else "…" + piece[1 - MAX_EVENT_CHARS :]
                self._left -= len(text)
                self._send({"event": "output", "stream": stream, "text": text})

    async def tick(self) -> None:
        """Send what waits a few times a second, and a heartbeat after silence."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            self.flush()
            if time.monotonic() - self._sent >= SILENCE_S:
                self._send({"event": "heartbeat", "elapsed_s": round(time.monotonic() - self._started)})

    def _send(self, event: dict[str, Any]) -> None:
        self._sent = time.monotonic()
        self._writer(self._common | event)


class ToolEventsMiddleware(AgentMiddleware[Any, Any, Any]):
    """Sends an event when a tool call starts and when it ends."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Any) -> ToolMessage | Command[Any]:
        """Announce the call, run it, announce its result."""
        call = request.tool_call
        common = {"type": "tool", "name": call["name"], "tool_call_id": call["id"]}
        writer = request.runtime.stream_writer
        writer(common | {"event": "start", "args": call["args"]})
        said: list[str] = []

        async def heard(message: ToolMessage) -> ToolMessage:
            said.append(message.text)
            return message

        # Also what comes with an update of state: of a sandbox that was made or replaced for this call.
        result: ToolMessage | Command[Any] = await each_message(await handler(request), heard)
        writer(common | {"event": "end", "text": "\n".join(said)})
        return result
