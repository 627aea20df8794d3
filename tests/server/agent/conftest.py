"""The graph `agent` in this process: real tools in real sandboxes, a script for the model's mind."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel import Pregel
from langgraph.store.memory import InMemoryStore

from agent.graphs.code_agent import code_agent
from agent.settings import Settings
from support.e2b_process import E2BLocal, isolation_arguments, start_e2b_local

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
