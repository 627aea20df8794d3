"""Unit tests touch no network: an attempt to open a socket fails the test."""

from collections.abc import Iterator

import pytest
import pytest_socket


@pytest.fixture(autouse=True)
def _no_sockets() -> Iterator[None]:
    # Unix sockets stay: an event loop is made with a pair of them.
    pytest_socket.disable_socket(allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()
