"""What an agent says when it cannot be built, or its first sandbox cannot be had for want of a key."""

import pytest
from langchain.agents import create_agent

from agent.context import Context
from agent.errors import SandboxKeyError, SettingsError
from agent.graphs.code_agent import code_agent, warn_of_free_tools
from agent.sandbox.middleware import SandboxMiddleware
from agent.scripted.model import ScriptedChatModel
from agent.settings import Settings
from agent.wiring import sandbox_manager


async def test_first_run_without_a_key_names_the_variable_and_the_way_on() -> None:
    """One line, before anything is sent: the variable that is missing, and e2b-local, which needs no key."""
    agent = create_agent(
        ScriptedChatModel.from_script("chat"),
        middleware=[SandboxMiddleware(sandbox_manager(Settings.from_env({"DEPLOYMENT": "unit"})))],
        context_schema=Context,
    )
    with pytest.raises(SandboxKeyError, match=r"^E2B_API_KEY is not set.*`e2b-local serve`") as caught:
        await agent.ainvoke({"messages": [("human", "hello")]}, context=Context())
    assert "\n" not in str(caught.value)


def test_a_tool_that_is_not_there_stops_the_start() -> None:
    """ASK_FIRST names tools of the agent; which those are is known when it is built."""
    settings = Settings.from_env({"ASK_FIRST": "run_command,nosuch"})
    with pytest.raises(SettingsError, match=r"no tool 'nosuch'; there are: run_python, run_command"):
        code_agent(settings)


@pytest.mark.parametrize(
    ("asking", "free"),
    [
        ("run_command", "run_python and start_command"),
        ("run_python,write_file", "run_command and start_command"),
        ("run_python,run_command,start_command", ""),
        ("write_file", ""),
        ("", ""),
    ],
)
def test_tools_that_run_code_and_ask_nobody_are_named_at_the_start(
    caplog: pytest.LogCaptureFixture, asking: str, free: str
) -> None:
    """One of three ways to run code asks: the others are said, since they can do the same."""
    warn_of_free_tools(Settings.from_env({"ASK_FIRST": asking}))
    assert (f"leaves {free} free" in caplog.text) == bool(free)
    assert bool(caplog.text) == bool(free)
