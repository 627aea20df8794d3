"""A server with a small script, and the real client in front of each of its two APIs."""

from collections.abc import Iterator

import pytest
from langchain_openai import ChatOpenAI

from support.openai_api.clients import MODELS, client
from support.openai_server import OpenAIServer, start_openai_server
from support.scripted_rules import model_of_rules

RULES = [
    {
        "name": "two sums",
        "when": {"human": "sums", "after": "human"},
        "say": "I compute both.",
        "call": [{"tool": "add", "args": {"a": 1, "b": 2}}, {"tool": "add", "args": {"a": 3, "b": 4}}],
    },
    {"name": "sums", "when": {"after": "add"}, "say": "The last one is {{result}}."},
    {
        "name": "person",
        "when": {"human": "Ada"},
        "call": {"tool": "Person", "args": {"name": "Ada", "age": 36}},
    },
    {"name": "echo", "say": "You said: {{human}}"},
]


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    """Start a server of the test's own."""
    with start_openai_server(model_of_rules(RULES)) as server:
        yield server


@pytest.fixture(params=list(MODELS))
def model(request: pytest.FixtureRequest, openai: OpenAIServer) -> ChatOpenAI:
    """Return the real client, once for each API."""
    return client(openai, request.param)
