"""Frames between the server and the agent: kind (1 byte), length (4 bytes, big-endian), payload."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any

_HEADER = struct.Struct(">BI")
_JSON = 0
_DATA = 1
# A kernel may print one huge result; a hostile agent must not be able to fill the server's memory.
MAX_FRAME_BYTES = 64 * 1024 * 1024
CHUNK_BYTES = 256 * 1024

Message = dict[str, Any]


class OpError(Exception):
    """An operation failed in a way the caller can name: a Connect code and a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Channel:
    """One operation's connection: frames in both directions, closed when the operation is over."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, message: Message) -> None:
        """Send one JSON message, waiting while the other side is slow."""
        await self._send(_JSON, json.dumps(message).encode())

    async def send_data(self, data: bytes) -> None:
        """Send bytes that the other side passes on unread."""
        await self._send(_DATA, data)

    async def receive(self) -> Message | bytes | None:
        """Return the next message (dict) or data (bytes), or None once the other side has closed.

        Raises:
            OpError: the frame is larger than allowed or not a JSON object; the channel is then unusable.
        """
        try:
            kind, length = _HEADER.unpack(await self.reader.readexactly(_HEADER.size))
            if length > MAX_FRAME_BYTES:
                raise OpError("internal", f"frame of {length} bytes is too large")
            payload = await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        if kind == _DATA:
            return payload
        try:
            message = json.loads(payload)
        except ValueError as exc:
            raise OpError("internal", "frame is not JSON") from exc
        if not isinstance(message, dict):
            raise OpError("internal", "frame is not a JSON object")
        return message

    def close(self) -> None:
        """Close both directions; the other side sees the end of the channel."""
        self.writer.close()

    async def _send(self, kind: int, payload: bytes) -> None:
        if len(payload) > MAX_FRAME_BYTES:  # the other side would hang up without a word
            raise OpError("invalid_argument", f"a message of {len(payload)} bytes is too large")
        self.writer.write(_HEADER.pack(kind, len(payload)))
        self.writer.write(payload)
        await self.writer.drain()
