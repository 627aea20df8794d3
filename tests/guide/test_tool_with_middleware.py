"""The guide's own tool, made async and otherwise as written, in an agent with our middleware."""

import pytest
from e2b_code_interpreter import AsyncSandbox
from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool

from agent.context import Context
from agent.models import chat_model
from agent.sandbox.middleware import SandboxMiddleware
from agent.settings import Settings
from agent.wiring import sandbox_manager
from support.e2b_process import E2BLocal
from support.openai_server import OpenAIServer


@tool
async def run_python(code: str, runtime: ToolRuntime[Context]) -> str:
    """Run Python in a Jupyter kernel. Returns stdout, the last result, or the error."""
    execution = await runtime.context.sandbox.run_code(code)
    if execution.error:
        return f"{execution.error.name}: {execution.error.value}"
    return "\n".join(execution.logs.stdout) + (execution.text or "")


@pytest.fixture
def settings(e2b: E2BLocal, openai: OpenAIServer) -> Settings:
    """Settings that point at both local servers."""
    return Settings.from_env({**e2b.env, **openai.env, "DEPLOYMENT": "guide"})


async def test_the_tool_finds_a_sandbox(settings: Settings) -> None:
    """The middleware makes the sandbox, every call finds the same one, and it is ended with the agent."""
    agent = create_agent(
        chat_model(settings),
        tools=[run_python],
        middleware=[SandboxMiddleware(sandbox_manager(settings))],
        context_schema=Context,
    )
    asked = {"messages": [("human", "How many r's are in 'strawberry', twice? Use code.")]}
    made = []
    async for mode, part in agent.astream(asked, context=Context(), stream_mode=["custom", "values"]):
        if mode == "custom":
            made.append(part["event"])
        else:
            result = part
    assert result["messages"][-1].text == "The code says 6."
    assert made == ["created", "ended"]
    assert result["sandbox_id"] == ""


async def test_a_sandbox_of_the_callers_own_is_used_and_kept(settings: Settings, e2b: E2BLocal) -> None:
    """Passed in the context as the guide does it, a sandbox is used and still running afterwards."""
    agent = create_agent(
        chat_model(settings),
        tools=[run_python],
        middleware=[SandboxMiddleware(sandbox_manager(settings))],
        context_schema=Context,
    )
    sandbox = await AsyncSandbox.create(timeout=600, **e2b.options)
    try:
        result = await agent.ainvoke(
            {"messages": [("human", "How many r's are in 'strawberry'? Use code.")]},
            context=Context(sandbox=sandbox),
        )
        assert result["messages"][-1].text == "The code says 3."
        assert (await sandbox.run_code("word")).text == "strawberry"
    finally:
        await sandbox.kill()
