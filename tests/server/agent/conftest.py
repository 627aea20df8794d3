"""The graph `agent` in this process: real tools in real sandboxes, a script for the model's mind."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel import Pregel
from langgraph.store.memory import InMemoryStore

from agent.graphs.code_agent import code_agent
from agent.settings import Settings
from server.agent.talk import Talk
from support.e2b_process import E2BLocal, isolation_arguments, start_e2b_local
from support.played_model import Play
from support.providers import provider

MakeAgent = Callable[..., Pregel[Any, Any, Any, Any]]


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[E2BLocal]:
    """The sandbox server."""
    server = start_e2b_local(*isolation_arguments(), "--pool", "0")
    yield server
    server.stop()


@pytest.fixture
def store() -> InMemoryStore:
    """Where the agent keeps artifacts."""
    return InMemoryStore()


@pytest.fixture
def make_agent(sandboxes: E2BLocal, store: InMemoryStore) -> MakeAgent:
    """Makes the graph with settings of the test's own: variables by name."""

    def make(**env: str) -> Pregel[Any, Any, Any, Any]:
        common = {"DEPLOYMENT": "agent-tests", "PUBLIC_URL": "http://server", "MODEL": "scripted:chat"}
        settings = Settings.from_env({**common, **sandboxes.env, **env})
        return code_agent(settings, checkpointer=InMemorySaver(), store=store)

    return make


@pytest.fixture
def talk(make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Talk]]:
    """Begins a thread."""
    with ExitStack() as stack:

        def begin(api: str, streamed: bool, play: Play, **env: str) -> Talk:
            served = stack.enter_context(provider(api, play))
            for name, value in served.env.items():
                monkeypatch.setenv(name, value)
            return Talk(make_agent(**{"SANDBOX_START": "lazy", **served.env, **env}), served, streamed)

        yield begin
