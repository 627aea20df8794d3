"""A chat model that answers from a script: for the demo, for tests and for trying things without a key."""

import asyncio
import json
import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCall, tool_call_chunk
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from agent.errors import ModelError
from agent.scripted import SCRIPTS
from agent.scripted.chat import chat
from agent.scripted.conversation import Answer, Conversation, Script
from agent.scripted.repair import repair


class ScriptedChatModel(BaseChatModel):
    """A chat model whose answers come from a script; they depend on nothing but the conversation.

    It streams, calls tools and gives structured output as a provider's model does, costs nothing and needs
    no network. What its script does not foresee it answers with a sentence that says so.
    """

    name: str
    scripts: tuple[Script, ...] = Field(repr=False, exclude=True)
    max_calls: int = 30
    """Of tools in a turn; one with as many gets no more calls: a script cannot loop for ever."""

    @classmethod
    def from_script(cls, name: str) -> Self:
        """Build the model from a script of this package, or from several: `repair+chat`, the first one first.

        Raises:
            ModelError: there is no such script; the text lists those there are.
        """
        return cls(name=name, scripts=tuple(map(_script, name.split("+"))))

    @property
    def model_name(self) -> str:
        """The name this model goes by in settings and traces."""
        return f"scripted:{self.name}"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name}

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools; a `tool_choice` that names one of them leaves only that one."""
        schemas = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=schemas, tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages, **kwargs))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, **kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._reply(messages, **kwargs)):
            yield ChatGenerationChunk(message=chunk)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, **kwargs):
            yield chunk
            await asyncio.sleep(0)  # others get their turn between tokens, as with a model on a network

    def answer(self, talk: Conversation) -> Answer:
        """Return the first answer whose tools are on offer, or a sentence that says there is none."""
        if talk.calls.total() < self.max_calls:
            for script in self.scripts:
                for answer in script(talk):
                    if talk.tools.issuperset(tool for tool, _ in answer.calls):
                        return answer
        return Answer(f"I am a scripted model, and my script ({self.name}) has no answer for this.")

    def _reply(
        self,
        messages: list[BaseMessage],
        tools: Sequence[dict[str, Any]] = (),
        tool_choice: str | None = None,
        **_: Any,
    ) -> AIMessage:
        offered = frozenset(tool["function"]["name"] for tool in tools)
        if tool_choice in offered:
            offered = frozenset({tool_choice})
        answer = self.answer(conversation(messages, offered))
        calls = [ToolCall(name=name, args=args, id=f"call_{uuid.uuid4().hex}") for name, args in answer.calls]
        reply = AIMessage(answer.text, tool_calls=calls)
        spent = count_tokens_approximately(messages, tools=list(tools))
        written = count_tokens_approximately([reply])
        reply.usage_metadata = UsageMetadata(
            input_tokens=spent, output_tokens=written, total_tokens=spent + written
        )
        reply.response_metadata = {
            "model_name": self.model_name,
            "finish_reason": "tool_calls" if calls else "stop",
        }
        return reply


def _script(name: str) -> Script:
    scripts: dict[str, Script] = {"chat": chat, "repair": repair}
    if name not in scripts:
        raise ModelError(f"there is no script {name!r}; there are: {', '.join(SCRIPTS)}")
    return scripts[name]


def conversation(messages: Sequence[BaseMessage], tools: frozenset[str]) -> Conversation:
    """Return what a script sees. A message of the human without text (images only) begins no turn."""
    begin = max((i for i, m in enumerate(messages) if isinstance(m, HumanMessage) and m.text), default=-1)
    turn = messages[begin + 1 :]
    asked = [call for message in turn if isinstance(message, AIMessage) for call in message.tool_calls]
    names = {call["id"]: call["name"] for call in asked}
    results = tuple(
        (m.name or names.get(m.tool_call_id, ""), str(m.text)) for m in turn if isinstance(m, ToolMessage)
    )
    return Conversation(
        human=str(messages[begin].text) if begin >= 0 else "",
        system="\n".join(str(m.text) for m in messages if isinstance(m, SystemMessage)),
        tools=tools,
        results=results,
        calls=Counter(call["name"] for call in asked),
    )


def _chunks(reply: AIMessage) -> Iterator[AIMessageChunk]:
    """Cut a reply into tokens: a word with the space after it, or a piece of a call's arguments."""
    for word in re.findall(r"\s*\S+\s?|\s+", str(reply.text)):
        yield AIMessageChunk(content=word)
    for index, call in enumerate(reply.tool_calls):
        yield _call_chunk(index, "", name=call["name"], id=call["id"])
        args = json.dumps(call["args"], ensure_ascii=False)
        size = max(16, len(args) // 100)  # a large file is not worth thousands of tokens
        for start in range(0, len(args), size):
            yield _call_chunk(index, args[start : start + size])
    yield AIMessageChunk(
        content="",
        usage_metadata=reply.usage_metadata,
        response_metadata=reply.response_metadata,
        chunk_position="last",
    )


def _call_chunk(index: int, args: str, **head: Any) -> AIMessageChunk:
    return AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(index=index, args=args, **head)])
