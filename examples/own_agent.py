"""Your own `create_agent`, with the sandbox middleware and the tools of this package."""

import asyncio

from langchain.agents import create_agent

from agent.context import Context
from agent.messages.middleware import MessagesMiddleware
from agent.models import chat_model
from agent.sandbox.middleware import SandboxMiddleware
from agent.settings import Settings
from agent.tools import run_command, run_python
from agent.wiring import guarded, sandbox_manager

manager = sandbox_manager()
agent = create_agent(
    chat_model(Settings.from_env()),
    tools=[run_python, run_command],
    middleware=[MessagesMiddleware(), SandboxMiddleware(manager)],
    context_schema=Context,
)
agent = guarded(agent, manager)


async def main() -> None:
    """Ask one question and print the answer."""
    question = {"messages": [("human", "How many r's are in 'strawberry'?")]}
    result = await agent.ainvoke(question, context=Context())
    print(result["messages"][-1].text)


if __name__ == "__main__":
    asyncio.run(main())
