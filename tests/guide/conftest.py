"""Both services as local servers, for programs that know nothing of it."""

from collections.abc import Iterator

import pytest
from e2b_code_interpreter import Sandbox

from support.e2b_process import WITHOUT_PLUGINS, E2BLocal, isolation_arguments, start_e2b_local
from support.openai_server import OpenAIServer, start_openai_server
from support.scripted_rules import model_of_rules

RULES = [
    {
        "name": "count",
        "when": {"human": "'(?P<word>\\w+)'", "after": "human"},
        "call": {"tool": "run_python", "args": {"code": "word = '{{word}}'\nword.count('r')"}},
    },
    {
        "name": "once more",
        "when": {"human": "twice", "after": "run_python", "calls": {"run_python": 1}},
        "call": {"tool": "run_python", "args": {"code": "print(word.count('r') * 2)"}},
    },
    {
        "name": "answer",
        "when": {"after": "run_python", "results": {"run_python": "^(?P<count>\\d+)$"}},
        "say": "The code says {{count}}.",
    },
]


@pytest.fixture(scope="session")
def e2b() -> Iterator[E2BLocal]:
    """Start one server for E2B's protocol; isolated where bubblewrap is installed."""
    server = start_e2b_local(*isolation_arguments(), "--pool", "0", *WITHOUT_PLUGINS)
    yield server
    assert server.stop() == 0


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    """Start a server for OpenAI's APIs whose model counts letters by running code."""
    with start_openai_server(model_of_rules(RULES)) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_sandbox_is_left(e2b: E2BLocal) -> Iterator[None]:
    yield
    left = Sandbox.list(**e2b.options).next_items()
    for info in left:
        Sandbox.kill(info.sandbox_id, **e2b.options)
    assert not left
