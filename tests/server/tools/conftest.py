"""The real SDK and the real tools in one sandbox of a server of their own."""

from collections.abc import AsyncIterator, Iterator

import pytest

from agent.sandbox.e2b import E2BProvider
from agent.sandbox.e2b.box import E2BBox, OwnedSandbox
from agent.sandbox.provider import SandboxSpec
from agent.settings import Settings
from support.e2b_process import E2BLocal, isolation_arguments, start_e2b_local


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[E2BLocal]:
    """The sandbox server."""
    server = start_e2b_local(*isolation_arguments())
    yield server
    server.stop()


@pytest.fixture(scope="session")
def provider(sandboxes: E2BLocal) -> E2BProvider:
    """Makes sandboxes at that server."""
    return E2BProvider(Settings.from_env(sandboxes.env))


@pytest.fixture(scope="module")
async def handle(provider: E2BProvider, sandboxes: E2BLocal) -> AsyncIterator[OwnedSandbox]:
    """One sandbox for the tests of a module."""
    sandbox = await provider.create(SandboxSpec("code-interpreter-v1", 3600, {}, "tools-tests"))
    yield sandbox
    await sandbox.kill()


@pytest.fixture(autouse=True)
async def _clean(sandboxes: E2BLocal) -> AsyncIterator[None]:
    yield
    sandboxes.clear_faults()


@pytest.fixture
async def box(handle: OwnedSandbox) -> AsyncIterator[E2BBox]:
    """What tools work with in that sandbox."""
    yield E2BBox(handle)
    handle.environment = None
