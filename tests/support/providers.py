"""The providers' APIs on loopback, each behind its real client, with a model whose mind the test plays."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, ToolCall

from support.anthropic_server import AnthropicServer
from support.openai_server import OpenAIServer
from support.played_model import Play, PlayedModel

MODELS = {
    "responses": {"MODEL": "openai:gpt-5.6-luna"},
    "chat": {"MODEL": "openai:gpt-4.1", "OPENAI_USE_RESPONSES_API": "false"},
    "anthropic": {"MODEL": "anthropic:claude-sonnet-5-5"},
}


@dataclass(frozen=True)
class Provider:
    """A running server: the variables that point an agent at it, and the bodies of the requests so far."""

    env: dict[str, str]
    requests: list[dict[str, Any]]


@contextmanager
def provider(api: str, play: Play) -> Iterator[Provider]:
    """Serve one of the APIs: responses, chat or anthropic."""
    model = PlayedModel(play=play)
    with AnthropicServer(model) if api == "anthropic" else OpenAIServer(model) as server:
        yield Provider({**server.env, **MODELS[api]}, server.requests)


def answer(text: str = "", *calls: tuple[str, dict[str, Any]], **wire: Any) -> AIMessage:
    """Return an answer with calls by name and arguments, and what is out of the ordinary on the wire."""
    made = [ToolCall(name=name, args=args, id=f"call_{n}_{id(wire)}") for n, (name, args) in enumerate(calls)]
    return AIMessage(text, tool_calls=made, additional_kwargs={"wire": wire} if wire else {})
