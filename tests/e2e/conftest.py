"""One real `langgraph dev` on one real `e2b-local`, for all end-to-end tests of a run."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from support.e2b_process import WITHOUT_PLUGINS, E2BLocal, isolation_arguments, start_e2b_local
from support.langgraph_dev import DevServer

ROOT = Path(__file__).parents[2]
DEPLOYMENT = "e2e"


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[E2BLocal]:
    """The sandbox server."""
    server = start_e2b_local(*isolation_arguments(), "--pool", "0", *WITHOUT_PLUGINS)
    yield server
    server.stop()


@pytest.fixture(scope="session")
async def server(sandboxes: E2BLocal, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DevServer]:
    """The package's own graphs, served; at the end no call may have blocked the event loop."""
    env = {"MODEL": "scripted:repair+chat", "DEPLOYMENT": DEPLOYMENT, **sandboxes.env}
    folder = tmp_path_factory.mktemp("langgraph-dev")
    arguments = ["--n-jobs-per-worker", "4"]
    async with DevServer(ROOT / "langgraph.json", folder, env=env, arguments=arguments) as running:
        yield running
    running.assert_no_blocking_errors()


@pytest.fixture
async def client(server: DevServer) -> AsyncIterator[LangGraphClient]:
    """The SDK's client of the server."""
    async with get_client(url=server.url) as client:
        yield client
