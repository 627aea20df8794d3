"""Asking again what only looks: a sandbox that is silent for a moment costs the model no turn."""

from contextvars import ContextVar
from typing import Any

from langchain.agents.middleware import ToolRetryMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from agent.errors import SandboxUnreachableError

LOOKING = ("read_file", "list_files", "glob", "grep")
"""The tools that change nothing, wherever they were interrupted. Code and commands may have run."""

_asked_again: ContextVar[bool] = ContextVar("asked_again", default=False)


def is_asked_again(exc: Exception) -> bool:
    """Whether a tool is to raise an error, and not to tell it: then `LookingRetries` calls the tool again."""
    return isinstance(exc, SandboxUnreachableError) and _asked_again.get()


class LookingRetries(ToolRetryMiddleware):
    """Calls a tool that only looks again, twice, where the sandbox did not answer.

    List it right behind `tool_errors()`, which tells the model of a sandbox that stays silent, and before
    `SandboxMiddleware`, which looks after the sandbox at each call.
    """

    def __init__(self) -> None:
        super().__init__(
            max_retries=2,
            tools=list(LOOKING),
            retry_on=(SandboxUnreachableError,),
            on_failure="error",
            initial_delay=0.5,
        )

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Any) -> ToolMessage | Command[Any]:
        """Call the tool, and again where that may help."""
        asked = _asked_again.set(request.tool_call["name"] in LOOKING)
        try:
            return await super().awrap_tool_call(request, handler)
        finally:
            _asked_again.reset(asked)
