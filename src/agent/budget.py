"""What one run may use up: model calls, tool calls, time. A run at its limit ends, and does not fail.

Ending lets the hooks after the agent run, so that its sandbox is ended or kept as on any other end. A resumed
run begins anew: it has a human's word, and the human's time to think is not the run's.

Ending is the hooks' work, on counters in state. A client can pass by both; so calls are counted once more
where they are made, and one too many is answered, not carried out.
"""

import time
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelCallLimitMiddleware,
    ToolCallLimitMiddleware,
    hook_config,
)
from langchain.agents.middleware.types import (
    ModelCallResult,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
    ToolCallRequest,
)
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.channels import UntrackedValue
from langgraph.runtime import Runtime
from langgraph.types import Command

from agent.run_counts import RunCounts
from agent.settings import Settings


def budget(settings: Settings) -> list[AgentMiddleware[Any, Any, Any]]:
    """Return the middleware that keeps a run within the deployment's limits."""
    return [
        TimeLimitMiddleware(settings.max_run_s),
        ModelCallsMiddleware(settings.max_model_calls),
        ToolCallsMiddleware(settings.max_tool_calls),
    ]


def _counted(state: Any, name: str) -> Any:
    """Return a state whose counters of a kind of call are counts: a client may have written others."""

    def count(value: object) -> int:
        return value if type(value) is int and value >= 0 else 0

    def counts(value: object) -> object:
        if name == "model":
            return count(value)
        return {key: count(each) for key, each in value.items()} if isinstance(value, dict) else {}

    keys = (f"thread_{name}_call_count", f"run_{name}_call_count")
    return {**state, **{key: counts(state[key]) for key in keys if key in state}}


class ModelCallsMiddleware(ModelCallLimitMiddleware[Any, Any]):
    """langchain's limit of model calls, with counts that a client cannot set below zero, nor pass by.

    Args:
        limit: calls in a run.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(run_limit=limit, exit_behavior="end")
        self._counts = RunCounts(limit)

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> ModelCallResult[Any]:
        """Call the model, unless the run has called it as often as it may."""
        if self._counts.is_over(request.runtime):
            words = f"I stopped: this run may call its model {self.run_limit} times, and it has."
            return ModelResponse([AIMessage(words)])
        result: ModelCallResult[Any] = await handler(request)
        return result

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """End the run at its limit."""
        return await super().abefore_model(_counted(state, "model"), runtime)

    async def aafter_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Count the call."""
        return await super().aafter_model(_counted(state, "model"), runtime)


class ToolCallsMiddleware(ToolCallLimitMiddleware[Any, Any]):
    """langchain's limit of tool calls, with counts that a client cannot set below zero, nor pass by.

    Args:
        limit: calls in a run.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(run_limit=limit, exit_behavior="end")
        self._counts = RunCounts(limit)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Any) -> ToolMessage | Command[Any]:
        """Call the tool, unless the run has called as many as it may."""
        if self._counts.is_over(request.runtime):
            words = f"error: this run may call {self.run_limit} tools, and it has: this call was not run"
            call = request.tool_call
            return ToolMessage(words, tool_call_id=call["id"] or "", name=call["name"], status="error")
        result: ToolMessage | Command[Any] = await handler(request)
        return result

    @hook_config(can_jump_to=["end"])
    async def aafter_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Count the calls, and end the run at its limit."""
        return await super().aafter_model(_counted(state, "tool"), runtime)


class TimeState(AgentState[Any]):
    """What the middleware adds to the agent's state."""

    work_began: NotRequired[Annotated[float, UntrackedValue, PrivateStateAttr]]
    """Not checkpointed: a resumed run, perhaps days later, finds none and starts the clock."""


class TimeLimitMiddleware(AgentMiddleware[TimeState, Any, Any]):
    """Ends a run that has worked too long, before its next model call.

    What is under way is not cut short: a command and a cell have limits of their own.

    Args:
        limit_s: seconds from the run's start, or from its last resume.
    """

    state_schema = TimeState

    def __init__(self, limit_s: float) -> None:
        super().__init__()
        self._limit_s = limit_s

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: TimeState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Start the clock, or look at it."""
        began = state.get("work_began")
        if not isinstance(began, float) or not 0 <= began <= time.time():  # a client may have written it
            return {"work_began": time.time()}
        if time.time() - began < self._limit_s:
            return None
        words = f"I stopped: this run may work for {self._limit_s:g} seconds, and they are over. "
        return {"jump_to": "end", "messages": [AIMessage(words + "What was done so far stands above.")]}
