"""The real manager and the real SDK, on a sandbox server of their own that can be told to fail."""

import itertools
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from agent.sandbox.e2b import E2BProvider
from agent.sandbox.manager import SandboxManager
from agent.sandbox.owners import Owner
from agent.sandbox.policy import SandboxPolicy
from agent.sandbox.retries import Retries
from agent.settings import Settings
from support.e2b_process import E2BLocal, isolation_arguments, start_e2b_local

MakeManager = Callable[..., SandboxManager]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[E2BLocal]:
    """The sandbox server."""
    server = start_e2b_local(*isolation_arguments(), "--pool", "0")
    yield server
    server.stop()


@pytest.fixture(autouse=True)
async def _clean(sandboxes: E2BLocal) -> AsyncIterator[None]:
    yield
    sandboxes.clear_faults()


@pytest.fixture
def settings(sandboxes: E2BLocal) -> Settings:
    """Settings that point at the sandbox server."""
    return Settings.from_env({**sandboxes.env, "DEPLOYMENT": "manager-tests"})


@pytest.fixture
def make_manager(settings: Settings) -> MakeManager:
    """Makes a manager as another process would have it: with nothing in its cache."""

    async def deployment() -> str:
        return settings.deployment or ""

    def make(**policy: object) -> SandboxManager:
        return SandboxManager(
            E2BProvider(settings),
            policy=SandboxPolicy.model_validate(policy),
            deployment=deployment,
            # Impatient: the same tries, without waiting for a human's sake.
            retries=Retries((0.01, 0.02, 0.05), (0.01, 0.02, 0.05), 0.01),
        )

    return make


@pytest.fixture
def owner() -> Owner:
    """A run of a thread that no other test has."""
    number = next(_numbers)
    return Owner(graph="agent", thread=f"thread-{number}", run=f"run-{number}", task=f"task-{number}")
