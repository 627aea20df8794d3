"""The sandbox's life inside an agent: made or found before, put before each tool call, let go after.

Hooks only; what they do is in `manager.py`. List this middleware last: hooks that run after the agent run in
reverse order, and one that raises before ours would keep ours from running.
"""

import dataclasses
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
from langchain.agents.middleware.types import ModelCallResult, OmitFromInput, ToolCallRequest
from langchain_core.messages import SystemMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Command, Overwrite

from agent.context import Context
from agent.messages.pairing import repaired
from agent.sandbox.manager import Acquired, SandboxManager
from agent.sandbox.notices import LOSS, LOST_IN_CALL, announce, notice
from agent.sandbox.owners import Owner, named, owner_of
from agent.sandbox.policy import SandboxPolicy


def newest(_: Any, new: Any) -> Any:
    """Keep the later value: parallel tool calls may each write the one they know."""
    return new


SandboxId = Annotated[str, OmitFromInput, newest]
"""State's `sandbox_id`: checkpointed, stripped from run input. The reducer is last, or it is ignored."""


class SandboxState(AgentState[Any]):
    """What the middleware adds to the agent's state."""

    sandbox_id: NotRequired[SandboxId]
    sandbox_policy: NotRequired[Annotated[dict[str, Any], OmitFromInput]]
    """The policy the run began with; a resume cannot change it."""
    sandbox_turn: NotRequired[Annotated[str, OmitFromInput]]
    """The run that began the turn: runs that resume it adopt what it made."""
    sandbox_loss: NotRequired[SandboxId]
    """What was lost in the newest run, in words; empty where nothing was."""


class SandboxMiddleware(AgentMiddleware[SandboxState, Any, Any]):
    """Gives an agent a sandbox for as long as it runs, or as its thread lives.

    Tools find it, live, in `runtime.context.sandbox`. A sandbox that the caller passes in its own context is
    used instead, and never paused or ended here. The agent's `context_schema` needs a field `sandbox`: use
    `agent.context.Context`, or a dataclass of your own.

    Args:
        manager: from `agent.wiring.sandbox_manager()`.
    """

    state_schema = SandboxState

    def __init__(self, manager: SandboxManager) -> None:
        super().__init__()
        self._manager = manager

    async def abefore_agent(self, state: SandboxState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Fix the run's policy, and make the sandbox or connect to the one in state."""
        if _brought(runtime):
            return None
        owner = owner_of(runtime)
        self._manager.begin(owner)
        policy = self._manager.policy.varied(runtime.context)
        update = {
            "sandbox_policy": policy.model_dump(),
            "sandbox_turn": owner.run,
            "sandbox_loss": Overwrite(""),
        }
        if policy.start == "lazy":
            return update
        acquired = await self._manager.acquire(owner, state.get("sandbox_id", ""), policy)
        announce(runtime, acquired)
        self._manager.recorded(owner, acquired.sandbox_id)
        loss = LOSS if acquired.how == "replaced" else ""
        return update | {"sandbox_id": acquired.sandbox_id, "sandbox_loss": Overwrite(loss)}

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> ModelCallResult[Any]:
        """Call the model with a conversation it can be sent, and the word of a loss if there was one."""
        changes: dict[str, Any] = {"messages": repaired(request.messages)}
        if request.state.get("sandbox_loss"):
            prompt = request.system_message.text if request.system_message else ""
            # These very words, whatever state holds: clients can write it.
            changes["system_message"] = SystemMessage(f"{prompt}\n\n{LOSS}".strip())
        result: ModelCallResult[Any] = await handler(request.override(**changes))
        return result

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Any) -> ToolMessage | Command[Any]:
        """Run the tool with the live sandbox in its context.

        Acquired anew each time, which costs nothing while this run holds it: after a resume `abefore_agent`
        has not run, perhaps in another process. A sandbox that dies under a call is replaced once, and the
        model is told; the call is not repeated, since it may have run.
        """
        if _brought(request.runtime):
            return await handler(request)  # type: ignore[no-any-return]
        known = request.state.get("sandbox_id", "")
        policy = SandboxPolicy.from_state(request.state.get("sandbox_policy"))
        acquired = await self._acquire(request, known, policy)
        result = await self._call(request, handler, acquired)
        if acquired.handle.gone:
            acquired = await self._acquire(request, acquired.sandbox_id, policy)
            result = _told(result, request) if acquired.how == "replaced" else result
        if acquired.sandbox_id == known or not isinstance(result, ToolMessage):
            return result
        self._manager.recorded(self._owner(request), acquired.sandbox_id)
        update = {"messages": [result], "sandbox_id": acquired.sandbox_id}
        return Command(update=update | ({"sandbox_loss": LOSS} if acquired.how == "replaced" else {}))

    def _owner(self, request: ToolCallRequest) -> Owner:
        return owner_of(request.runtime, turn=request.state.get("sandbox_turn", ""))

    async def _acquire(
        self, request: ToolCallRequest, sandbox_id: str, policy: SandboxPolicy | None
    ) -> Acquired:
        owner = self._owner(request)
        # Without an id: a lazy start, or a call that was interrupted before its sandbox reached state.
        acquired = await self._manager.acquire(owner, sandbox_id, policy, again=not sandbox_id)
        announce(request.runtime, acquired)
        return acquired

    async def _call(
        self, request: ToolCallRequest, handler: Any, acquired: Acquired
    ) -> ToolMessage | Command[Any]:
        given: Any = request.runtime.context or Context()
        context: Any = dataclasses.replace(given, sandbox=acquired.handle)
        runtime = dataclasses.replace(request.runtime, context=context)
        try:
            result: ToolMessage | Command[Any] = await handler(dataclasses.replace(request, runtime=runtime))
        except GraphBubbleUp:
            raise
        except Exception as exc:
            # A tool written for the SDK raises what the SDK raises; ours leave a mark on the handle.
            if not await self._manager.is_gone(acquired, exc):
                raise
            return _told(None, request)
        return result

    async def aafter_agent(self, state: SandboxState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """End the sandbox or keep it for the thread; an empty id in state means none."""
        sandbox_id = named(state.get("sandbox_id"))
        if _brought(runtime) or not sandbox_id:
            return None
        policy = SandboxPolicy.from_state(state.get("sandbox_policy"))
        owner = owner_of(runtime, turn=state.get("sandbox_turn", ""))
        kept = await self._manager.release(owner, sandbox_id, policy)
        event, words = ("paused", "The sandbox was paused.") if kept else ("ended", "The sandbox was ended.")
        runtime.stream_writer(notice(event, sandbox_id, words))
        return {"sandbox_id": Overwrite(kept)}


def _brought(runtime: Any) -> bool:
    return getattr(runtime.context, "sandbox", None) is not None


def _told(result: ToolMessage | Command[Any] | None, request: ToolCallRequest) -> ToolMessage:
    """Return the call's result with the word that its sandbox was lost meanwhile."""
    said = f"{result.text}\n" if isinstance(result, ToolMessage) else ""
    call = request.tool_call
    return ToolMessage(said + LOST_IN_CALL, tool_call_id=call["id"], name=call["name"], status="error")
