"""Asking the agent inside a sandbox to do something."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator
from typing import Any

from e2b_local.inbox.wire import Channel, Message, OpError


class BoxGoneError(Exception):
    """The sandbox's agent does not answer any more: its processes have ended."""


class AgentClient:
    """Opens one connection for each operation; holds nothing between them.

    What the agent answers comes from inside the sandbox and is believed only as far as that goes.
    """

    def __init__(self, socket_path: pathlib.Path) -> None:
        self._path = socket_path

    async def call(self, op: str, **arguments: Any) -> Message:
        """Run an operation that only answers.

        Raises:
            OpError: the operation failed; its code says how.
            BoxGoneError: the sandbox ended before it answered.
        """
        async with self.open(op, **arguments) as channel:
            return await final(channel)

    @contextlib.asynccontextmanager
    async def open(self, op: str, **arguments: Any) -> AsyncIterator[Channel]:
        """Start an operation and give its channel; leaving closes it, which ends or detaches the operation.

        Raises:
            BoxGoneError: nobody answers at the socket.
        """
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._path), limit=1024 * 1024)
        except OSError as exc:
            raise BoxGoneError from exc
        channel = Channel(reader, writer)
        try:
            await channel.send({"op": op, **arguments})
            yield channel
        except ConnectionError as exc:
            raise BoxGoneError from exc
        finally:
            channel.close()


async def final(channel: Channel) -> Message:
    """Return what an operation ends with.

    Raises:
        OpError: it ended with an error.
        BoxGoneError: it did not end.
    """
    while isinstance(message := await channel.receive(), bytes):
        pass
    return outcome(message)


def outcome(message: Message | None) -> Message:
    """Return the `ok` part of an operation's last message; raises as `final` does."""
    if message is None:
        raise BoxGoneError
    if isinstance(error := message.get("error"), dict):
        raise OpError(str(error.get("code")), str(error.get("message")))
    ok = message.get("ok")
    return ok if isinstance(ok, dict) else {}
