"""The small agent that carries out one step of a plan."""

import dataclasses
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelCallLimitMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from agent.context import Context
from agent.errors import SandboxGoneError
from agent.failures import tool_errors
from agent.messages.middleware import MessagesMiddleware
from agent.models import ModelMiddleware, placeholder_model
from agent.redaction import RedactionMiddleware, Secrets
from agent.repair.plan import Plan
from agent.repair.prompts import EXECUTOR, step_request
from agent.repair.state import RepairState
from agent.repair.workspace import ROOT
from agent.sandbox.provider import Handle
from agent.settings import Settings
from agent.tools import Limits, file_tools, shell_tool
from agent.tools.events import ToolEventsMiddleware
from agent.tools.retries import LookingRetries

MAX_MODEL_CALLS = 25
"""In one step; a model that needs more goes round in circles."""


_NOT_SYNC: Any = {"configurable": {"__pregel_durability": "async"}}
"""An agent within a node inherits the run's durability, and without a checkpointer it fails on "sync" in
langgraph 1.2.24. The argument `durability`, which would say the same, warns that it has no effect there."""


class StopWhenGone(AgentMiddleware[Any, Any, Any]):
    """Ends the step when its sandbox is gone: the node starts it again in a new one."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Any) -> ToolMessage | Command[Any]:
        """Run the tool; raise if its sandbox turned out to be gone."""
        result: ToolMessage | Command[Any] = await handler(request)
        context: Any = request.runtime.context
        if getattr(context.sandbox, "gone", False):
            raise SandboxGoneError("the sandbox was lost while a step was carried out")
        return result


class Executor:
    """Works in the project's folder with files and a shell."""

    def __init__(self, settings: Settings, secrets: Secrets) -> None:
        limits = Limits.of(settings)
        self._agent: Any = create_agent(
            placeholder_model(),
            tools=[*file_tools(limits, ROOT), shell_tool(limits, ROOT)],
            system_prompt=EXECUTOR,
            middleware=[
                ModelMiddleware(settings),
                ModelCallLimitMiddleware(run_limit=MAX_MODEL_CALLS, exit_behavior="end"),
                MessagesMiddleware(settings.model_images),
                StopWhenGone(),
                RedactionMiddleware(secrets),
                ToolEventsMiddleware(),
                tool_errors(),
                LookingRetries(),
            ],
            context_schema=Context,
            # A step that is cut short starts anew: its messages need no checkpoints of their own.
            checkpointer=False,
            name="executor",
        )

    async def carry_out(
        self, plan: Plan, index: int, state: RepairState, handle: Handle, runtime: Runtime[Context]
    ) -> str:
        """Carry out the step at `index`, counted from 0, in the given sandbox; return the agent's report."""
        request = step_request(
            plan, index, state["test_command"], workdir=state["workdir"], edited=state["edited"]
        )
        context = dataclasses.replace(runtime.context or Context(), sandbox=handle)
        result = await self._agent.ainvoke(
            {"messages": [("human", request)]}, config=_NOT_SYNC, context=context
        )
        last = result["messages"][-1]
        return last.text if isinstance(last, AIMessage) and last.text else "no report"
