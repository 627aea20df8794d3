"""What tools return beside text, as an agent's middleware: shelved, linked, announced."""

from collections.abc import Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from agent.artifacts.shelf import Shelf
from agent.artifacts.shelving import Entry, Shelving, links
from agent.server.signing import signer
from agent.settings import Settings
from agent.tools.messages import each_message


class ArtifactsMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps bytes out of messages: charts and large texts go to the store, the message gets links.

    List it before `SandboxMiddleware`. It acts on every tool that returns results as
    `agent.artifacts.shelving` describes; others pass untouched.

    Args:
        settings: how addresses are signed, and where browsers reach the server.
        redact: applied to every text that is kept.
    """

    def __init__(self, settings: Settings, redact: Callable[[str], str] = str) -> None:
        super().__init__()
        self._settings = settings
        self._redact = redact

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Any) -> ToolMessage | Command[Any]:
        """Run the tool, then move what it returned beside its text to the thread's shelf."""
        result: ToolMessage | Command[Any] = await handler(request)
        return await each_message(result, lambda message: self._shelved(message, request))

    async def _shelved(self, message: ToolMessage, request: ToolCallRequest) -> ToolMessage:
        artifact = message.artifact
        if not (isinstance(artifact, dict) and "results" in artifact):
            return message
        runtime, thread_id = request.runtime, thread_of(request.runtime)
        shelf = Shelf(runtime.store, thread_id) if runtime.store else None
        entries = await Shelving(shelf, self._redact).entries(artifact["results"])
        url = await self._addresses(thread_id)
        for entry in entries:
            if "name" in entry:
                runtime.stream_writer(self._event(entry, url, request))
        said = links(entries, url)
        # An empty line: what follows a tag directly is not read as Markdown.
        content = f"{message.text}\n\n{said}" if said else message.content
        return message.model_copy(update={"content": content, "artifact": {"artifacts": entries}})

    async def _addresses(self, thread_id: str) -> Callable[[str], str | None]:
        base = self._settings.public_address
        if base is None:
            return lambda name: None
        signing = await signer(self._settings)
        return lambda name: signing.address(base, "artifact", thread_id, name)

    @staticmethod
    def _event(entry: Entry, url: Callable[[str], str | None], request: ToolCallRequest) -> Entry:
        call_id = request.tool_call["id"]
        return {"type": "artifact", "tool_call_id": call_id, **entry, "url": url(entry["name"])}


def thread_of(runtime: Any) -> str:
    """Return the thread whose shelf a run uses; a run without a thread has one of its own."""
    info = runtime.execution_info
    return str(info.thread_id or info.run_id or "none")
