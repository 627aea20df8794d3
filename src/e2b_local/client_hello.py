"""The name of the server in the greeting of a TLS connection (RFC 8446, 4.1.2; RFC 6066, 3)."""

from __future__ import annotations

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 22, 1, 0, 0


class _ShortError(Exception):
    """There is more to come."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def __bool__(self) -> bool:
        return bool(self._data)

    def take(self, size: int) -> bytes:
        if len(self._data) < size:
            raise _ShortError
        taken, self._data = self._data[:size], self._data[size:]
        return taken

    def rest(self) -> bytes:
        return self._data

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def block(self, size: int) -> _Reader:
        """Take what a length of `size` bytes is said to be the length of."""
        return _Reader(self.take(self.number(size)))


def server_name(said: bytes) -> str | None:
    """Return the name that a client greets; None if its greeting is not complete.

    Raises:
        ValueError: it is no such greeting, or names nobody.
    """
    if said[0] != _HANDSHAKE:
        raise ValueError("no TLS handshake")
    try:
        hello = _message(_Reader(said))
    except _ShortError:
        return None
    try:
        name = _named(hello)
    except _ShortError:
        raise ValueError("a broken greeting") from None
    if name is None:
        raise ValueError("no server is named")
    return name


def _message(records: _Reader) -> _Reader:
    """Return the body of the first message, which may lie in several records."""
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[1:4]):
        if records.number(1) != _HANDSHAKE:
            raise ValueError("no TLS handshake")
        records.take(2)  # the version of the record layer
        data += records.take(records.number(2))
    if data[0] != _CLIENT_HELLO:
        raise ValueError("no greeting of a client")
    return _Reader(data[4 : 4 + int.from_bytes(data[1:4])])


def _named(hello: _Reader) -> str | None:
    hello.take(2 + 32)  # version, random
    for size in (1, 2, 1):  # session, cipher suites, compression
        hello.block(size)
    extensions = hello.block(2) if hello else hello
    while extensions:
        kind, extension = extensions.number(2), extensions.block(2)
        if kind != _SERVER_NAME:
            continue
        names = extension.block(2)
        while names:
            kind, name = names.number(1), names.block(2)
            if kind == _HOST_NAME:
                return name.rest().decode("ascii")
    return None
