"""A thread of the agent on one of the providers' APIs, with a model whose mind the test plays."""

import itertools
import uuid
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from agent.context import Context
from support.played_model import Play
from support.providers import Provider

APIS = ["responses", "chat", "anthropic"]


class Talk:
    """A thread of the agent on one of the APIs."""

    def __init__(self, agent: Any, served: Provider, streamed: bool) -> None:
        self.agent, self.requests = agent, served.requests
        self._streamed = streamed
        self.started: list[str] = []
        self.config: Any = {"configurable": {"thread_id": str(uuid.uuid4())}}

    async def say(self, content: Any = "Go.", **context: Any) -> list[BaseMessage]:
        """Say something, and return the thread's messages; `started` holds the tools that ran."""
        modes = ["custom", "messages"] if self._streamed else ["custom"]
        given = {"messages": [HumanMessage(content)]} if content is not None else None
        stream = self.agent.astream(given, self.config, context=Context(**context), stream_mode=modes)
        async for mode, part in stream:
            if mode == "custom" and part.get("event") == "start":
                self.started.append(part["name"])
        return await self.messages()

    async def messages(self) -> list[BaseMessage]:
        """Return the thread's messages."""
        values = (await self.agent.aget_state(self.config)).values
        return list(values["messages"])


def first_then_done(first: AIMessage) -> Play:
    """Answer with one message, and from then on with a word."""
    answers = itertools.chain([first], itertools.repeat(AIMessage("Done.")))
    return lambda _: next(answers).model_copy()
