"""Hosts allowed by name: what a box sends to ports 80 and 443 goes on to the host it names, or nowhere."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable

import h11

from e2b_local.egress import Egress
from e2b_local.inbox.relay import copy

_log = logging.getLogger(__name__)
_TLS_PORT = 443
_NAME_TIMEOUT_S = 10.0
_MOST_BYTES = 64 * 1024
_READ_BYTES = 16 * 1024
_MOST_CONNECTIONS = 256


class NamedHosts:
    """Answers on sockets that listen in the network of a box, and connects from this server's own.

    The address that a program connected to means nothing: the name it says is looked up here, and never leads
    to this machine's loopback.
    """

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._servers: list[asyncio.Server] = []
        self._running: set[asyncio.Task[None]] = set()

    async def open(self, listening: list[socket.socket]) -> None:
        """Answer on these sockets until closed."""
        for each in listening:
            self._servers.append(await asyncio.start_server(self._answer, sock=each))

    async def close(self) -> None:
        """Stop answering and break what is connected."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            if len(self._running) <= _MOST_CONNECTIONS:
                await self._join(reader, writer)
        except asyncio.CancelledError:
            pass  # by close, or by the server's end: nothing waits for this
        finally:
            if not writer.is_closing():
                writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        name, onward = "", None
        # Too slow, broken off or without a name: it ends like what is not allowed.
        with contextlib.suppress(TimeoutError, OSError, ValueError):
            async with asyncio.timeout(_NAME_TIMEOUT_S):
                name, said = await _named(reader, _server_name() if port == _TLS_PORT else _host())
                if self._egress.allows(name):
                    onward = await _connect(name, port)
        if onward is None:
            # Quoted and shortened: what comes out of a box was written by programs of the sandbox.
            _log.debug("port %d of %.100r is not allowed, or not there", port, name)
            return
        far_reader, far_writer = onward
        try:
            far_writer.write(said)
            await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))
            writer.close()  # once all that was written has gone
        finally:
            far_writer.close()


Finder = Callable[[bytes], str | None]
"""Takes what a program sends, piece by piece, until it finds the host's name in it."""


async def _named(reader: asyncio.StreamReader, find: Finder) -> tuple[str, bytes]:
    """Return the name of the host that is wanted, and all that was read to find it.

    Raises:
        ValueError: there is none.
    """
    said = b""
    while len(said) < _MOST_BYTES and (piece := await reader.read(_READ_BYTES)):
        said += piece
        if (name := find(piece)) is not None:
            return name, said
    raise ValueError("ended before it named a host")


def _host() -> Finder:
    """Find the Host header of an HTTP request."""
    connection = h11.Connection(our_role=h11.SERVER)

    def find(piece: bytes) -> str | None:
        connection.receive_data(piece)
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError as exc:
            raise ValueError("no HTTP") from exc
        if not isinstance(event, h11.Request):
            return None
        host = dict(event.headers).get(b"host", b"").decode("ascii")
        return host.rpartition(":")[0] or host

    return find


def _server_name() -> Finder:
    """Find the server's name in the greeting of TLS, which OpenSSL reads for us up to there."""
    found: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def stop(_connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> int:
        found.append(name or "")
        return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR

    context.sni_callback = stop
    incoming = ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, ssl.MemoryBIO(), server_side=True)

    def find(piece: bytes) -> str | None:
        incoming.write(piece)
        try:
            connection.do_handshake()
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLError as exc:
            if found:
                return found[0]
            raise ValueError("no TLS") from exc
        return None

    return find


async def _connect(name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a host, wherever its name leads outside this machine.

    Raises:
        OSError: it leads nowhere else, or nothing answers.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    failure = OSError("no address outside this machine")
    for address in dict.fromkeys(str(each[4][0]) for each in found):
        if not _inward(address):
            try:
                return await asyncio.open_connection(address, port)
            except OSError as exc:
                failure = exc
    raise failure


def _inward(address: str) -> bool:
    known = ipaddress.ip_address(address.partition("%")[0])
    known = getattr(known, "ipv4_mapped", None) or known
    return known.is_loopback or known.is_unspecified or known.is_link_local or known.is_multicast
