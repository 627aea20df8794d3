"""A connection to a scripted server."""

from collections.abc import Iterator

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from agent.cli.session import Session
from support.thread_server import FakeServer


@pytest.fixture
def server() -> FakeServer:
    """What the server says."""
    return FakeServer()


@pytest.fixture
def session(server: FakeServer) -> Iterator[Session]:
    """A connection to it."""
    with Session("http://fake") as session:
        http = httpx.AsyncClient(transport=httpx.MockTransport(server.handle), base_url="http://fake")
        session.server._client = LangGraphClient(http)
        yield session
