"""Super-steps of a run: few for each round of the model, and as many as the deployment's own limits allow.

LangGraph counts super-steps, which a caller neither sees nor wants to count: `create_agent` makes one of each
hook of each middleware. What bounds a run here is MAX_MODEL_CALLS, MAX_TOOL_CALLS and MAX_RUN_S.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar, get_type_hints

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.types import (
    ModelCallResult,
    ModelRequest,
    ToolCallRequest,
)
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from langgraph.runtime import Runtime
from langgraph.types import Command
from typing_extensions import TypedDict

Update = dict[str, Any]
Hook = Callable[[Any, Runtime[Any]], Awaitable[Update | None]]
Graph = TypeVar("Graph", bound=Pregel[Any, Any, Any, Any])


class InOneNode(AgentMiddleware[Any, Any, Any]):
    """Several middlewares whose hooks of a kind run in one node, one after the other.

    In the order that `create_agent` would run them: before the model from the first to the last, after it
    from the last to the first, around a call the first is the outermost. A hook sees what those before it
    have written; one that jumps ends the node. None may interrupt: the node would run again from its start.

    Args:
        parts: with asynchronous hooks, and without tools of their own.
    """

    def __init__(self, parts: Sequence[AgentMiddleware[Any, Any, Any]]) -> None:
        super().__init__()
        self._parts = parts
        fields = {
            name: hint
            for part in parts
            for name, hint in get_type_hints(part.state_schema, include_extras=True).items()
        }
        own = {name: hint for name, hint in fields.items() if name not in get_type_hints(AgentState)}
        made: Any = TypedDict  # its fields are known here alone
        self.state_schema = made("State", own, total=False)

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> Update | None:
        """Run the hooks before the agent."""
        return await self._each("abefore_agent", self._parts, state, runtime)

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: Any, runtime: Runtime[Any]) -> Update | None:
        """Run the hooks before the model."""
        return await self._each("abefore_model", self._parts, state, runtime)

    @hook_config(can_jump_to=["end"])
    async def aafter_model(self, state: Any, runtime: Runtime[Any]) -> Update | None:
        """Run the hooks after the model."""
        return await self._each("aafter_model", self._parts[::-1], state, runtime)

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> ModelCallResult[Any]:
        """Run what stands around a call of the model."""
        result: ModelCallResult[Any] = await self._around("awrap_model_call", handler)(request)
        return result

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Any) -> ToolMessage | Command[Any]:
        """Run what stands around a call of a tool."""
        result: ToolMessage | Command[Any] = await self._around("awrap_tool_call", handler)(request)
        return result

    async def _each(
        self, name: str, parts: Sequence[AgentMiddleware[Any, Any, Any]], state: Any, runtime: Runtime[Any]
    ) -> Update | None:
        written: Update = {}
        for hook in (getattr(part, name) for part in parts if _has(part, name)):
            update: Update = await hook(state, runtime) or {}
            messages = [*_listed(written.get("messages")), *_listed(update.get("messages"))]
            written |= update | ({"messages": messages} if messages else {})
            if "jump_to" in update:
                break
            state = {**state, **update}
            if "messages" in update:
                state["messages"] = add_messages(state.get("messages", []), update["messages"])
        return written or None

    def _around(self, name: str, handler: Any) -> Any:
        for part in reversed(self._parts):
            if _has(part, name):
                handler = partial(getattr(part, name), handler=handler)
        return handler


def _has(part: AgentMiddleware[Any, Any, Any], name: str) -> bool:
    return getattr(type(part), name) is not getattr(AgentMiddleware, name)


def _listed(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


class RoomyGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A graph whose own recursion limit holds where a caller's is smaller.

    A caller may not have meant one: `astream_events`, and so a server's `stream_mode="events"`, sets 25.
    """

    def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        """Stream as any graph does."""
        own = (self.config or {}).get("recursion_limit")
        if config and own and config.get("recursion_limit", own) < own:
            config = {**config, "recursion_limit": own}
        return super().astream(input, config, **options)


def roomy(graph: Graph) -> Graph:
    """Return the graph with its own recursion limit as the least; one of another kind as it is."""
    if type(graph) is not CompiledStateGraph:
        return graph
    made: Any = RoomyGraph(**{name: value for name, value in vars(graph).items() if name != "__orig_class__"})
    return made  # type: ignore[no-any-return]
