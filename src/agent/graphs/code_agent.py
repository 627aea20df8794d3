"""The graph `agent`: a chat agent that answers by running code in a sandbox."""

import logging
from collections.abc import Sequence
from typing import Annotated, Any, Required

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.messages import AnyMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.message import add_messages
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore
from pydantic import Field

from agent.approvals import ApprovalsMiddleware
from agent.artifacts.images import ImagesMiddleware
from agent.artifacts.middleware import ArtifactsMiddleware
from agent.budget import budget
from agent.context import Context
from agent.errors import SettingsError
from agent.failures import tool_errors
from agent.messages.middleware import MessagesMiddleware
from agent.models import ModelMiddleware, placeholder_model
from agent.prompt import PromptMiddleware
from agent.redaction import RedactionMiddleware
from agent.sandbox.middleware import SandboxMiddleware
from agent.settings import Settings
from agent.summaries import summaries
from agent.super_steps import InOneNode
from agent.tools import Limits, background_tools, file_tools, python_tool, shell_tool
from agent.tools.events import ToolEventsMiddleware
from agent.tools.retries import LookingRetries
from agent.wiring import deployment_seals, guarded, sandbox_manager

logger = logging.getLogger(__name__)


class ChatState(AgentState[Any]):
    """The agent's state, with what callers are shown of it."""

    messages: Required[
        Annotated[
            list[AnyMessage],
            Field(
                description="The conversation; a run is sent what is new in it, such as "
                '[{"role": "user", "content": "..."}].'
            ),
            add_messages,
        ]
    ]


def code_agent(
    settings: Settings,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
    state_schema: type[AgentState[Any]] | None = None,
) -> Pregel[Any, Any, Any, Any]:
    """Return the graph; a program that serves itself gives it a checkpointer and a store.

    Args:
        settings: of the deployment.
        checkpointer: keeps threads; the LangGraph server brings its own and refuses another.
        store: keeps charts and files; without one they are not kept, and the model is told so.
        state_schema: wins over the agent's own, such as one with another channel for `messages`.

    Raises:
        SettingsError: `ASK_FIRST` names no tool of the agent.
    """
    limits = Limits.of(settings)
    manager = sandbox_manager(settings)
    tools = [python_tool(limits), shell_tool(limits), *background_tools(limits), *file_tools(limits)]
    agent = create_agent(
        placeholder_model(),
        tools=tools,
        # From the outside in: a tool's result passes them from the last to the first.
        middleware=[
            _approvals(tools, settings),
            InOneNode([*budget(settings), summaries(settings), ModelMiddleware(settings)]),
            ModelRetryMiddleware(on_failure="error"),
            PromptMiddleware(settings, limits),
            ImagesMiddleware(settings.model_images),
            MessagesMiddleware(settings.model_images),
            RedactionMiddleware(manager.secrets),
            ToolEventsMiddleware(),
            ArtifactsMiddleware(settings, manager.secrets.redacted),
            tool_errors(),
            LookingRetries(),
            SandboxMiddleware(manager),
        ],
        context_schema=Context,
        state_schema=state_schema or ChatState,
        checkpointer=checkpointer,
        store=store,
        name="agent",
    )
    return guarded(agent, manager)


def _approvals(tools: Sequence[BaseTool], settings: Settings) -> ApprovalsMiddleware:
    names = [tool.name for tool in tools]
    if unknown := sorted(set(settings.ask_first).difference(names)):
        raise SettingsError(
            f"ASK_FIRST={settings.ask_first_tools!r} cannot be used: there is no tool {unknown[0]!r}; "
            f"there are: {', '.join(names)}"
        )
    return ApprovalsMiddleware(tools, ask_first=settings.ask_first, seals=deployment_seals(settings))


def warn_of_free_tools(settings: Settings) -> None:
    """Log which tools run code and ask nobody, where another that runs code asks."""
    if free := settings.free_of_approval:
        logger.warning(
            "ASK_FIRST=%s leaves %s free, which can do the same: name all that run code to be asked about it",
            settings.ask_first_tools,
            " and ".join(free),
        )


_settings = Settings.from_env()
warn_of_free_tools(_settings)
graph = code_agent(_settings)
