"""`plan_execute` in this process, on a real sandbox server, with a model whose mind the test plays."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agent.graphs.plan_execute import repair_graph
from agent.settings import Settings
from agent.wiring import sandbox_manager
from support.e2b_process import WITHOUT_PLUGINS, E2BLocal, isolation_arguments, start_e2b_local
from support.openai_server import OpenAIServer
from support.played_model import PlayedModel
from support.repairs import Mind, Repair

MakeRepair = Callable[..., Repair]


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[E2BLocal]:
    """The sandbox server."""
    server = start_e2b_local(*isolation_arguments(), "--pool", "0", *WITHOUT_PLUGINS)
    yield server
    server.stop()


@pytest.fixture(autouse=True)
async def _clean(sandboxes: E2BLocal) -> AsyncIterator[None]:
    yield
    sandboxes.clear_faults()


@pytest.fixture(scope="session")
def model() -> PlayedModel:
    """The model, which gets another mind for each test."""
    return PlayedModel(play=Mind())


@pytest.fixture(scope="session")
def openai(model: PlayedModel) -> Iterator[OpenAIServer]:
    """A server of the model, for the real client."""
    server = OpenAIServer(model)
    yield server
    server.stop()


@pytest.fixture
def mind(model: PlayedModel) -> Mind:
    """What the model has in mind."""
    mind = Mind()
    model.play = mind
    return mind


@pytest.fixture
def settings(sandboxes: E2BLocal, openai: OpenAIServer) -> Settings:
    """Settings that point at both servers."""
    return Settings.from_env(
        {
            **sandboxes.env,
            **openai.env,
            "DEPLOYMENT": "repair-tests",
            "SANDBOX_INTERNET": "off",
            "SANDBOX_ENVS": "WEATHER",
            "WEATHER": "named",
        }
    )


@pytest.fixture
def make_repair(settings: Settings, mind: Mind) -> MakeRepair:
    """Makes a thread; each has a graph as another process would have it."""
    saver = InMemorySaver()

    def make(*plans: Any, **context: Any) -> Repair:
        mind.plans = list(plans)
        return Repair(repair_graph(settings, sandbox_manager(settings), saver), mind, **context)

    return make
