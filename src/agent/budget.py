"""What one turn may use up: model calls, tool calls, time. A run at its limit ends, and does not fail.

Ending lets the hooks after the agent run, so that its sandbox is ended or kept as on any other end. A turn is
all that follows one input: the runs that resume it, after a question or a cancel, go on with its counts. Each
approval would be a new budget otherwise. The human's time to think is not counted.

Ending is the hooks' work, on counters in state. A client can pass by both: so calls of a run are counted
once more where they are made, and one too many is answered, not carried out.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Mapping
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

from agent.sandbox.middleware import newest
from agent.sandbox.owners import owner_of
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


MAX_RUNS = 2_000
"""More are forgotten, oldest first: nothing tells when a run is over."""


class RunCounts:
    """Counts for each run of a server; a resumed run, and one that is begun again, is another.

    The process counts where the thing is done: a client can write state, and cannot write these.

    Args:
        limit: how often it may be done in a run.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: OrderedDict[tuple[Any, ...], int] = OrderedDict()

    def is_over(self, runtime: Any) -> bool:
        """Count once more; whether it is once too often.

        Args:
            runtime: a LangGraph `Runtime` or a tool's `ToolRuntime`. Where a program gives its runs no ids
                nothing is counted: one thread's runs could not be told apart, and who writes their state is
                the program itself.
        """
        owner, info = owner_of(runtime), runtime.execution_info
        if owner.home == "process" and not info.run_id:
            return False
        # An agent that is a part of another graph may be used several times in one run.
        use = info.checkpoint_ns.rpartition("|")[0]
        key = (owner.run, owner.retried, use)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        self._counts.move_to_end(key)
        while len(self._counts) > MAX_RUNS:
            self._counts.popitem(last=False)
        return count > self._limit


class ModelCallsState(AgentState[Any]):
    """The count of langchain's limit, kept with the thread: a resumed run finds it.

    Its count of the whole thread, for which there is no limit here, is not kept.
    """

    run_model_call_count: NotRequired[Annotated[int, PrivateStateAttr, newest]]


class ToolCallsState(AgentState[Any]):
    """As `ModelCallsState`."""

    run_tool_call_count: NotRequired[Annotated[dict[str, int], PrivateStateAttr, newest]]


class ModelCallsMiddleware(ModelCallLimitMiddleware[Any, Any]):
    """langchain's limit of model calls, with counts that a client cannot set below zero, nor pass by.

    Args:
        limit: calls in a run.
    """

    state_schema = ModelCallsState  # type: ignore[assignment]

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
        """Count the call, and its time: what comes next may be a question, and the end of the run."""
        counted = await super().aafter_model(_counted(state, "model"), runtime)
        return {**(counted or {}), **_worked(state)}


class ToolCallsMiddleware(ToolCallLimitMiddleware[Any, Any]):
    """langchain's limit of tool calls, with counts that a client cannot set below zero, nor pass by.

    Args:
        limit: calls in a run.
    """

    state_schema = ToolCallsState  # type: ignore[assignment]

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

    worked_s: NotRequired[Annotated[float, PrivateStateAttr, newest]]
    """How long the turn has worked, in seconds, up to `work_began`."""
    work_began: NotRequired[Annotated[float, UntrackedValue(float, guard=False), PrivateStateAttr]]
    """Not checkpointed: a resumed run, perhaps days later, finds none and starts the clock."""


def turn_begun(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what belongs into state when a turn begins: empty counts.

    Once in a run: a client that sends it through its beginning again gets no new budget.
    """
    if state.get("work_began") is not None:
        return {}
    return {"run_model_call_count": 0, "run_tool_call_count": {}, "worked_s": 0.0, **clock_started()}


def clock_started() -> dict[str, float]:
    """Return what belongs into state when a run goes on after a human's answer."""
    return {"work_began": time.time()}


def _worked(state: Mapping[str, Any]) -> dict[str, float]:
    """Return what belongs into state of the time that passed since it was last looked at."""
    before, began, now = state.get("worked_s"), state.get("work_began"), time.time()
    # A client may have written either.
    worked_s = before if isinstance(before, float) and 0 <= before < math.inf else 0.0
    passed_s = now - began if isinstance(began, float) and 0 <= began <= now else 0.0
    return {"worked_s": worked_s + passed_s, "work_began": now}


class TimeLimitMiddleware(AgentMiddleware[TimeState, Any, Any]):
    """Ends a turn that has worked too long, before its next model call.

    What is under way is not cut short: a command and a cell have limits of their own.

    Args:
        limit_s: seconds of work since the turn's input.
    """

    state_schema = TimeState

    def __init__(self, limit_s: float) -> None:
        super().__init__()
        self._limit_s = limit_s

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: TimeState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Look at the clock."""
        worked = _worked(state)
        if worked["worked_s"] < self._limit_s:
            return worked
        words = f"I stopped: this run may work for {self._limit_s:g} seconds, and they are over. "
        told = AIMessage(words + "What was done so far stands above.")
        return {**worked, "jump_to": "end", "messages": [told]}
