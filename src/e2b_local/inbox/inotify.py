"""Linux's file notification, which the standard library does not offer."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator

MODIFY, ATTRIB, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
_WANTED = MODIFY | ATTRIB | MOVED_FROM | MOVED_TO | CREATE | DELETE
_IS_DIR = 0x40000000
_ONLY_DIR = 0x01000000
_HEADER = struct.Struct("iIII")
_BUFFER_BYTES = 64 * 1024


class Notifier:
    """Watches folders; `descriptor` is readable when something happened in one of them."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "file notification is not available")
        self._folders: dict[int, str] = {}

    def add(self, folder: str) -> None:
        """Watch a folder, not those in it.

        Raises:
            OSError: it is not there, or there are too many watches.
        """
        number = self._libc.inotify_add_watch(self.descriptor, os.fsencode(folder), _WANTED | _ONLY_DIR)
        if number < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), folder)
        self._folders[number] = folder

    def events(self) -> Iterator[tuple[str, int, bool]]:
        """Yield what has happened: the path, which of the constants above, and whether it is a folder."""
        try:
            data = os.read(self.descriptor, _BUFFER_BYTES)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            number, mask, _cookie, length = _HEADER.unpack_from(data, at)
            name = data[at + _HEADER.size : at + _HEADER.size + length].rstrip(b"\0")
            at += _HEADER.size + length
            folder = self._folders.get(number)
            if folder is not None and name:
                yield os.path.join(folder, os.fsdecode(name)), mask & _WANTED, bool(mask & _IS_DIR)

    def close(self) -> None:
        """Stop watching."""
        os.close(self.descriptor)
