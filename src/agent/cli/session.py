"""One event loop and one connection, used from code that is not async."""

import asyncio
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from agent.client import Server

if TYPE_CHECKING:
    from agent.settings import Settings

T = TypeVar("T")


class Session:
    """A connection to a LangGraph server for one command.

    Between two calls of `run` no event loop runs: a prompt there blocks nothing, and Ctrl-C is an ordinary
    KeyboardInterrupt. One during `run` cancels what runs and is raised after that; the session stays usable.

    Args:
        url: the server's address.
        api_key: its key, if it asks for one.
        headers: sent with every request.
    """

    def __init__(
        self, url: str, *, api_key: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self._runner = asyncio.Runner()
        self.server = Server(url, api_key=api_key, headers=headers)

    @classmethod
    def to(cls, settings: "Settings", server: str | None, headers: Mapping[str, str]) -> Self:
        """Return a session with the server of the command line's option or of the settings."""
        key = settings.langgraph_api_key
        url = server or settings.langgraph_url
        return cls(url, api_key=key.get_secret_value() if key else None, headers=headers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.run(self.server.close())
        finally:
            self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result."""
        return self._runner.run(work)
