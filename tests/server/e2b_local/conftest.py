"""One isolated server for all tests of e2b_local, and sandboxes that end with their test or its file."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from e2b_code_interpreter import AsyncSandbox

from support.e2b_process import (
    E2BLocal,
    MakeSandbox,
    isolation_arguments,
    isolation_missing,
    start_e2b_local,
)


@pytest.fixture(scope="session")
def isolated() -> None:
    """Skip what needs isolation where it is missing; with REQUIRE_BWRAP=1 fail instead."""
    missing = isolation_missing()
    if missing and os.environ.get("REQUIRE_BWRAP") == "1":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)


@pytest.fixture(scope="session")
def server() -> Iterator[E2BLocal]:
    """A server with isolation where there is bubblewrap, else without.

    It has no warm sandboxes: few tests run cells, and for each other one a kernel would start in vain.
    """
    running = start_e2b_local(
        *("--pool", "0"),
        *isolation_arguments(),
        env={"E2B_LOCAL_TEST_SECRET": "of the server"},
    )
    yield running
    assert running.stop() == 0


@pytest.fixture
async def make_sandbox(server: E2BLocal) -> AsyncIterator[MakeSandbox]:
    """Create sandboxes that are killed after the test."""
    made: list[AsyncSandbox] = []

    async def make(**arguments: Any) -> AsyncSandbox:
        sandbox = await AsyncSandbox.create(**(server.options | arguments))
        made.append(sandbox)
        return sandbox

    yield make
    for sandbox in made:
        await sandbox.kill()


@pytest.fixture(scope="module")
async def shared(server: E2BLocal) -> AsyncIterator[AsyncSandbox]:
    """One sandbox for those tests of a file that leave nothing another could stumble over.

    It was created with the variables A and B.
    """
    envs = {"A": 'it\'s "quoted"', "B": "sandbox"}
    sandbox = await AsyncSandbox.create(envs=envs, **server.options)
    yield sandbox
    await sandbox.kill()


@pytest.fixture
async def sandbox(make_sandbox: MakeSandbox) -> AsyncSandbox:
    """One fresh sandbox."""
    return await make_sandbox()
