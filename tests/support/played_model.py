"""A chat model that a test plays: its answers are a function of the conversation."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

Play = Callable[[list[BaseMessage]], AIMessage]


def call(tool: str, **args: Any) -> AIMessage:
    """Return an answer that calls one tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": args, "id": f"call_{uuid.uuid4().hex}"}])


class PlayedModel(BaseChatModel):
    """Answers with what `play` returns; it sees the messages, the tools it may call are its own affair."""

    play: Play

    @property
    def _llm_type(self) -> str:
        return "played"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Take note of the tools on offer."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = self.play(messages)
        answer.usage_metadata = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return ChatResult(generations=[ChatGeneration(message=answer)])
