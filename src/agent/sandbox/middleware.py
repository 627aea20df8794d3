"""The sandbox's life inside an agent: made or found before, put before each tool call, ended after.

Hooks only; what they do is in `manager.py`. List this middleware last: hooks that run after the agent run in
reverse order, and one that raises before ours would keep ours from running.
"""

import dataclasses
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import OmitFromInput, ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import Command, Overwrite

from agent.context import Context
from agent.sandbox.manager import Acquired, Owner, SandboxManager


def newest(_: str, new: str) -> str:
    """Keep the later id: parallel tool calls may each write the one they used."""
    return new


SandboxId = Annotated[str, OmitFromInput, newest]
"""State's `sandbox_id`: checkpointed, stripped from run input. The reducer is last, or it is ignored."""


class SandboxState(AgentState[Any]):
    """What the middleware adds to the agent's state."""

    sandbox_id: NotRequired[SandboxId]


def owner_of(runtime: Any, graph: str = "agent") -> Owner:
    """Return on whose behalf a node or tool runs; `graph` is its name where no server says it.

    Outside a server and without a checkpointer there is no thread; the run then owns its sandbox alone.
    """
    info = runtime.execution_info
    server = runtime.server_info
    return Owner(
        graph=server.graph_id if server else graph,
        thread=info.thread_id or info.run_id or info.task_id,
        run=info.run_id or "",
        task=info.task_id,
    )


class SandboxMiddleware(AgentMiddleware[SandboxState, Any, Any]):
    """Gives an agent a sandbox for as long as it runs.

    Tools find it, live, in `runtime.context.sandbox`. A sandbox that the caller passes in its own context is
    used instead, and never ended here. The agent's `context_schema` needs a field `sandbox`: use
    `agent.context.Context`, or a dataclass of your own.

    Args:
        manager: from `agent.wiring.sandbox_manager()`.
    """

    state_schema = SandboxState

    def __init__(self, manager: SandboxManager) -> None:
        super().__init__()
        self._manager = manager

    async def abefore_agent(self, state: SandboxState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Make the sandbox, or connect to the one in state."""
        if _brought(runtime):
            return None
        acquired = await self._manager.acquire(owner_of(runtime), state.get("sandbox_id", ""))
        announce(runtime, acquired)
        return {"sandbox_id": acquired.sandbox_id}

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Any) -> ToolMessage | Command[Any]:
        """Run the tool with the live sandbox in its context.

        Acquired anew each time, which costs nothing while this process knows the sandbox: after a resume
        `abefore_agent` has not run, perhaps in another process.
        """
        if _brought(request.runtime):
            return await handler(request)  # type: ignore[no-any-return]
        known = request.state.get("sandbox_id", "")
        acquired = await self._manager.acquire(owner_of(request.runtime), known)
        announce(request.runtime, acquired)
        given: Any = request.runtime.context or Context()
        context: Any = dataclasses.replace(given, sandbox=acquired.handle)
        runtime = dataclasses.replace(request.runtime, context=context)
        result: ToolMessage | Command[Any] = await handler(dataclasses.replace(request, runtime=runtime))
        if acquired.sandbox_id == known or not isinstance(result, ToolMessage):
            return result
        return Command(update={"messages": [result], "sandbox_id": acquired.sandbox_id})

    async def aafter_agent(self, state: SandboxState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """End the sandbox, and leave no id in state: empty means none."""
        sandbox_id = state.get("sandbox_id", "")
        if _brought(runtime) or not sandbox_id:
            return None
        await self._manager.release(owner_of(runtime), sandbox_id)
        runtime.stream_writer(_notice("ended", sandbox_id, "The sandbox was ended."))
        return {"sandbox_id": Overwrite("")}


def _brought(runtime: Any) -> bool:
    return getattr(runtime.context, "sandbox", None) is not None


_WORDS = {
    "created": "A new sandbox was made.",
    "connected": "Connected to the thread's sandbox.",
    "replaced": "The thread's sandbox was gone: a new one was made; files and variables are lost.",
}


def announce(runtime: Any, acquired: Acquired) -> None:
    """Tell clients, on the `custom` stream, how the sandbox was come by."""
    if acquired.how in _WORDS:
        runtime.stream_writer(_notice(acquired.how, acquired.sandbox_id, _WORDS[acquired.how]))


def _notice(event: str, sandbox_id: str, message: str) -> dict[str, str]:
    return {"type": "sandbox", "event": event, "sandbox_id": sandbox_id, "message": message}
