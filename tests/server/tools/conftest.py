"""The real SDK and the real tools in one sandbox of a server of their own."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from agent.context import Context
from agent.sandbox.e2b import E2BProvider
from agent.sandbox.e2b.box import E2BBox, OwnedSandbox
from agent.sandbox.provider import SandboxSpec
from agent.settings import Settings
from agent.tools import background_tools, file_tools, python_tool, shell_tool
from support.e2b_process import E2BLocal, isolation_arguments, start_e2b_local


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[E2BLocal]:
    """The sandbox server."""
    server = start_e2b_local(*isolation_arguments(), "--pool", "0")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def provider(sandboxes: E2BLocal) -> E2BProvider:
    """Makes sandboxes at that server."""
    return E2BProvider(Settings.from_env(sandboxes.env))


@pytest.fixture(scope="module")
async def handle(provider: E2BProvider, sandboxes: E2BLocal) -> AsyncIterator[OwnedSandbox]:
    """One sandbox for the tests of a module."""
    sandbox = await provider.create(SandboxSpec("code-interpreter-v1", 3600, {}, "tools-tests"))
    yield sandbox
    await sandbox.kill()


@pytest.fixture(autouse=True)
async def _clean(sandboxes: E2BLocal) -> AsyncIterator[None]:
    yield
    sandboxes.clear_faults()


@pytest.fixture
async def box(handle: OwnedSandbox) -> AsyncIterator[E2BBox]:
    """What tools work with in that sandbox."""
    yield E2BBox(handle)
    handle.environment = None


CallTool = Callable[..., Awaitable[ToolMessage]]
"""Calls a tool by name with arguments, as a graph does, and returns its message."""


@pytest.fixture
def make_caller(handle: OwnedSandbox) -> Callable[[list[BaseTool]], CallTool]:
    """Makes a caller of tools: a graph of one node, LangGraph's own, in the module's sandbox."""
    numbers = itertools.count(1)

    def make(tools: list[BaseTool]) -> CallTool:
        graph = StateGraph(MessagesState, Context)
        graph.add_node("tools", ToolNode(tools))
        graph.add_edge(START, "tools")
        compiled = graph.compile()

        async def call(name: str, /, **arguments: Any) -> ToolMessage:
            request = {"name": name, "args": arguments, "id": f"call-{next(numbers)}"}
            asked: Any = {"messages": [AIMessage("", tool_calls=[request])]}
            state = await compiled.ainvoke(asked, context=Context(sandbox=handle))
            message = state["messages"][-1]
            assert isinstance(message, ToolMessage)
            assert (message.status == "error") == message.text.startswith("error: ")
            return message

        return call

    return make


@pytest.fixture
def call_tool(make_caller: Callable[[list[BaseTool]], CallTool]) -> CallTool:
    """Calls the tools with their default limits."""
    return make_caller([python_tool(), shell_tool(), *background_tools(), *file_tools()])
