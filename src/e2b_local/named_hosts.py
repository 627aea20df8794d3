"""Hosts allowed by name: what a box sends to ports 80 and 443 goes on to the host it names, or nowhere."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import resource
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import h11

from e2b_local.client_hello import server_name
from e2b_local.egress import Egress

_log = logging.getLogger(__name__)
_TLS_PORT = 443
_NAME_TIMEOUT_S = 10.0
_CONNECT_TIMEOUT_S = 4.0
_STALLED_S = 300.0
_MOST_BYTES = 64 * 1024
_PIECE_BYTES = 64 * 1024
_MOST_LOOKUPS = 4
# Each connection takes two of the files that this process may open, half of which are for all else; and a few
# sandboxes cannot take the rest of them from the others.
_MOST_OF_ALL = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4
_MOST_CONNECTIONS = min(64, _MOST_OF_ALL // 8)
_ALL_CONNECTIONS = asyncio.Semaphore(_MOST_OF_ALL)
_RESET = struct.pack("ii", 1, 0)
_BACK_OFF_S = 1.0
_GATHER_S = 0.05


class NamedHosts:
    """Answers on sockets that listen in the network of a box, and connects from this server's own.

    The address that a program connected to means nothing: the name it says is looked up here, and never leads
    to this machine. Whoever comes while there are too many connections waits.
    """

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._free = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._lookups = asyncio.Semaphore(_MOST_LOOKUPS)
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, listening: list[socket.socket]) -> None:
        """Answer on these sockets until closed."""
        for each in listening:
            each.setblocking(False)
            self._start(self._accept(each), each)

    async def close(self) -> None:
        """Stop answering and break what is connected."""
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    def _start(self, work: Coroutine[Any, Any, None], owned: socket.socket) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Here and not in the task, which may be cancelled before it begins.
        task.add_done_callback(lambda _: owned.close())
        return task

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        port = listening.getsockname()[1]
        while True:
            try:
                near, _ = await loop.sock_accept(listening)
            except OSError as exc:
                _log.warning("a sandbox's connection was not taken: %s", exc)
                await asyncio.sleep(_BACK_OFF_S)
                continue
            try:
                await self._free.acquire()
                if _ALL_CONNECTIONS.locked():
                    _log.warning("%d connections by name are open: others wait", _MOST_OF_ALL)
                await _ALL_CONNECTIONS.acquire()
            except BaseException:
                near.close()
                raise
            near.setblocking(False)
            self._start(self._join(near, port), near).add_done_callback(self._release)

    def _release(self, _: object) -> None:
        _ALL_CONNECTIONS.release()
        self._free.release()

    async def _join(self, near: socket.socket, port: int) -> None:
        name, far = "", None
        # Too slow, broken off or without a name: it ends like what is not allowed.
        with contextlib.suppress(TimeoutError, OSError, ValueError):
            async with asyncio.timeout(_NAME_TIMEOUT_S):
                name, said = await _named(near, server_name if port == _TLS_PORT else _host)
                if self._egress.allows(name):
                    far = await self._connect(name, port)
        if far is None:
            # Quoted and shortened: what comes out of a box was written by programs of the sandbox.
            _log.debug("port %d of %.100r is not allowed, or not there", port, name)
            return
        with far:
            try:
                await _send(far, said)
                async with asyncio.TaskGroup() as group:
                    sent = group.create_task(_copy(near, far))
                    group.create_task(_copy(far, near, sent))
            except* OSError:
                # As the one side broke, so does the other: what ended early must not look whole.
                for each in (near, far):
                    with contextlib.suppress(OSError):
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    async def _connect(self, name: str, port: int) -> socket.socket:
        """Connect to a host, wherever its name leads outside this machine.

        Raises:
            OSError: it leads nowhere else, or nothing answers.
        """
        loop = asyncio.get_running_loop()
        failure = OSError("no address outside this machine")
        for family, address in await self._looked_up(name, port):
            if _inward(address[0]):
                continue
            far = socket.socket(family, socket.SOCK_STREAM)
            try:
                far.setblocking(False)
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                    await loop.sock_connect(far, address)
                # A machine that speaks to itself does so from the address that it speaks to.
                if far.getsockname()[0] != far.getpeername()[0]:
                    return far
            except OSError as exc:  # a TimeoutError too
                failure = exc
            except BaseException:
                far.close()
                raise
            far.close()
        raise failure

    async def _looked_up(self, name: str, port: int) -> list[tuple[int, tuple[str, int]]]:
        """Return the addresses of a name.

        In a thread of its own, few of them for one sandbox: a name server that stays silent holds up only who
        asks it, and not this program's end.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[tuple[int, tuple[str, int]]]] = loop.create_future()

        def give(found: list[tuple[int, tuple[str, int]]] | OSError) -> None:
            self._lookups.release()
            if answer.done():
                return
            if isinstance(found, OSError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        def look_up() -> None:
            found: list[tuple[int, tuple[str, int]]] | OSError
            try:
                infos = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
                found = [(info[0], (str(info[4][0]), port)) for info in infos]
            except (OSError, UnicodeError) as exc:
                found = OSError(str(exc))
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(give, found)

        await self._lookups.acquire()
        try:
            threading.Thread(target=look_up, name="lookup", daemon=True).start()
        except RuntimeError as exc:
            self._lookups.release()
            raise OSError(str(exc)) from exc
        return await answer


Finder = Callable[[bytes], str | None]
"""Return the host's name from the beginning of what a program sends; None if there is more to come.

Raises ValueError where there is none.
"""


async def _named(near: socket.socket, find: Finder) -> tuple[str, bytes]:
    """Return the name of the host that is wanted, and all that was read to find it.

    Raises:
        ValueError: there is none.
    """
    loop = asyncio.get_running_loop()
    said = b""
    while len(said) < _MOST_BYTES and (piece := await loop.sock_recv(near, _PIECE_BYTES)):
        said += piece
        if (name := find(said)) is not None:
            return name, said
        # Sent byte by byte, it is not read anew for each of them.
        await asyncio.sleep(_GATHER_S)
    raise ValueError("ended before it named a host")


def _host(said: bytes) -> str | None:
    """Find the Host header of an HTTP request."""
    connection = h11.Connection(our_role=h11.SERVER)
    connection.receive_data(said)
    try:
        event = connection.next_event()
    except h11.RemoteProtocolError as exc:
        raise ValueError("no HTTP") from exc
    if not isinstance(event, h11.Request):
        return None
    host = dict(event.headers).get(b"host", b"").decode("ascii")
    return host.rpartition(":")[0] or host


async def _copy(source: socket.socket, target: socket.socket, sent: asyncio.Task[None] | None = None) -> None:
    """Pass bytes on until the source ends, and say so to the target.

    A target that takes no more ends this alone: it may still have something to say.

    Args:
        source: where they come from.
        target: where they go.
        sent: what passes on the other way; once it is done, the source may not be silent for long.

    Raises:
        OSError: the source broke or fell silent, or the target stalled.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as patience:
        if sent is not None:
            sent.add_done_callback(lambda _: _hurry(patience))
        while piece := await loop.sock_recv(source, _PIECE_BYTES):
            try:
                await _send(target, piece)
            except ConnectionError:
                return
            if sent is not None and sent.done():
                _hurry(patience)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _hurry(patience: asyncio.Timeout) -> None:
    with contextlib.suppress(RuntimeError):  # what it is for has ended
        patience.reschedule(asyncio.get_running_loop().time() + _STALLED_S)


async def _send(target: socket.socket, piece: bytes) -> None:
    async with asyncio.timeout(_STALLED_S):
        await asyncio.get_running_loop().sock_sendall(target, piece)


def _inward(address: str) -> bool:
    known = ipaddress.ip_address(address.partition("%")[0])
    known = getattr(known, "ipv4_mapped", None) or known
    return known.is_loopback or known.is_unspecified or known.is_link_local or known.is_multicast
