"""Passes on the head and the tail of what is printed, and keeps the whole in a file.

Sent into the sandbox with `command.py` or `cells.py`: the standard library only, any Python from 3.8.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than this program runs
    from collections.abc import Callable

CAP_BYTES = 64 * 1024 * 1024
"""Of each file: a program that never stops printing must not fill the disk."""


class Stream:
    """One stream of a command or a cell.

    After its head comes, if more was printed than is passed on or a file was begun, a mark: the record
    separator, the nonce, how many bytes were printed, left out and kept in the file, whether more will be,
    and the record separator. Then comes the tail.

    Args:
        path: of the file.
        nonce: makes the mark one of this call's.
        pass_bytes: how much is passed on, half of it as head and half as tail.
        spool_from: the file is begun when more than so many bytes were printed.
        write: passes bytes on.
        batch: how many bytes are collected for the file; 0 where this process may be killed at any time.
    """

    def __init__(
        self,
        path: str,
        nonce: str,
        pass_bytes: int,
        spool_from: int,
        write: Callable[[bytes], object],
        batch: int = 0,
    ) -> None:
        self.path = path
        self.total = 0
        self._nonce = nonce
        self._half = pass_bytes // 2
        self._spool_from = spool_from
        self._write = write
        self._batch = batch
        self._passed = 0
        self._passing = True
        self._tail = bytearray()
        self._pending = bytearray()
        self._file = -1
        self._kept = 0
        self._lost = False
        self._finished = False

    def take(self, data: bytes) -> None:
        """Take in what was just printed."""
        self.total += len(data)
        self._keep(data)
        if self._finished:
            return
        if self._passing:
            room = self._half - self._passed
            piece = data[:room]
            if len(data) >= room:
                piece, self._passing = whole_characters(piece), False
            if piece:
                self._write(piece)
                self._passed += len(piece)
            data = data[len(piece) :]
        self._tail += data
        if len(self._tail) > 2 * self._half:
            del self._tail[: len(self._tail) - self._half]

    def finish(self, goes_on: bool = False) -> None:
        """Pass on the mark, if there is something to tell, and the tail.

        Args:
            goes_on: more will come, for the file alone, which is begun now if it was not.
        """
        self._batch = 0
        if goes_on:
            self._spool_from = -1
        self._keep(b"")
        tail = bytes(self._tail)
        if self._passed + len(tail) < self.total or len(tail) > self._half:
            tail = from_character(tail[len(tail) - self._half :])
        left_out = self.total - self._passed - len(tail)
        if left_out or self._file >= 0:
            told = f"\x1e{self._nonce} {self.total} {left_out} {self._kept} {int(goes_on)}\x1e"
            tail = told.encode() + tail if left_out else tail + told.encode()
        if tail:
            self._write(tail)
        self._finished = True

    def _keep(self, data: bytes) -> None:
        if self._lost:
            return
        self._pending += data
        if self.total <= self._spool_from or len(self._pending) < self._batch:
            return
        try:
            if self._file < 0:
                self._file = opened(self.path)
            room = memoryview(self._pending)[: CAP_BYTES - self._kept]
            while room:
                written = os.write(self._file, room)
                self._kept += written
                room = room[written:]
        except OSError:
            self._lost = True
        self._pending = bytearray()


def named() -> None:
    """Take a name of one's own: a command that kills everything called python must not kill its own relay."""
    try:
        with open("/proc/self/comm", "w") as file:
            file.write("agent-relay")
    except OSError:
        pass


def opened(path: str) -> int:
    """Open a file to add to; its folder is for all, since a kernel may run as another user than commands."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o1777)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def whole_characters(data: bytes) -> bytes:
    """Return the data without the beginning of a character that its end cuts in half."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return data[:-back] if length > back else data
    return data


def from_character(data: bytes) -> bytes:
    """Return the data without the rest of a character that its start cuts in half."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
