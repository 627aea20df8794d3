"""Breaking the TCP connections of the network that this process is in (`ss --kill` does the same).

Once the way out of a network is another one, what is connected through the old gets no further; without this
a program would wait for an answer until its own time limit.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
_SOCK_DIAG = 4
_BY_FAMILY, _DESTROY = 20, 21
_REQUEST, _ACK, _DUMP = 0x001, 0x004, 0x300
_ERROR, _DONE = 2, 3
_HEAD = struct.Struct("=IHHII")
_REQUEST_HEAD = struct.Struct("=BBBBI")
_ID_AT, _ID_BYTES = 4, 48
_READ_BYTES = 1 << 16
_LISTENING = 1 << 10
_EVERY_STATE = 0xFFF & ~_LISTENING
_TIMEOUT_S = 5.0


def break_all() -> None:
    """Reset every TCP connection that leaves by another interface than the loopback.

    Raises:
        OSError: the kernel cannot be asked, or cannot break connections (CONFIG_INET_DIAG_DESTROY).
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(_TIMEOUT_S)
        for family in (socket.AF_INET, socket.AF_INET6):
            for connection in list(_listed(kernel, family)):
                if not _within(family, connection):
                    _ask(kernel, family, _DESTROY, _REQUEST | _ACK, connection)
                    # One that has ended by itself meanwhile is an error too.
                    with contextlib.suppress(FileNotFoundError):
                        for _ in _answers(kernel):
                            pass


def _listed(kernel: socket.socket, family: int) -> Iterator[bytes]:
    _ask(kernel, family, _BY_FAMILY, _REQUEST | _DUMP, bytes(_ID_BYTES))
    for answer in _answers(kernel):
        yield answer[_ID_AT : _ID_AT + _ID_BYTES]


def _within(family: int, connection: bytes) -> bool:
    """Whether both ends of a connection are this network's own loopback."""
    # Two ports, then 16 bytes for each address.
    length = 4 if family == socket.AF_INET else 16
    ends = (connection[4 : 4 + length], connection[20 : 20 + length])
    own = b"\x7f" if family == socket.AF_INET else bytes(15) + b"\1"
    return all(end.startswith(own) for end in ends)


def _ask(kernel: socket.socket, family: int, kind: int, flags: int, connection: bytes) -> None:
    body = _REQUEST_HEAD.pack(family, socket.IPPROTO_TCP, 0, 0, _EVERY_STATE) + connection
    kernel.sendto(_HEAD.pack(_HEAD.size + len(body), kind, flags, 1, 0) + body, (0, 0))


def _answers(kernel: socket.socket) -> Iterator[bytes]:
    """Yield what the kernel answers, up to its last word.

    Raises:
        OSError: its last word is an error.
    """
    while True:
        data = kernel.recv(_READ_BYTES)
        while data:
            length, kind, *_ = _HEAD.unpack_from(data)
            body = data[_HEAD.size : length]
            data = data[(length + 3) & ~3 :]
            if kind == _ERROR:
                number = -struct.unpack_from("=i", body)[0]
                if number:
                    raise OSError(number, "the kernel broke no connection")
                return
            if kind == _DONE:
                return
            yield body
