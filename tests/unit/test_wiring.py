"""What an agent says when its first sandbox cannot be had for want of a key."""

import pytest
from langchain.agents import create_agent

from agent.context import Context
from agent.errors import SandboxKeyError
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
