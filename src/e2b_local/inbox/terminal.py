"""Pseudo-terminals for processes that want one."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import AsyncIterator, Mapping

from .wire import Message

_READ_BYTES = 64 * 1024


def spawn(
    command: list[str], cwd: str, environment: Mapping[str, str], size: Message
) -> tuple[subprocess.Popen[bytes], int]:
    """Start `command` on a new terminal; return it and the terminal's master side.

    Raises:
        OSError: the command cannot be started; the terminal is closed again.
    """
    master, slave = pty.openpty()
    try:
        resize(master, int(size.get("cols") or 80), int(size.get("rows") or 24))
        # setsid --ctty makes the slave the controlling terminal without code between fork and exec.
        process = subprocess.Popen(
            ["setsid", "--ctty", *command], cwd=cwd, env=environment, stdin=slave, stdout=slave, stderr=slave
        )
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    os.set_blocking(master, False)
    return process, master


def resize(master: int, cols: int, rows: int) -> None:
    """Set the size of a terminal in characters."""
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


async def read(master: int) -> AsyncIterator[bytes]:
    """Yield the terminal's output until its last process has closed it."""
    while True:
        try:
            piece = os.read(master, _READ_BYTES)
        except BlockingIOError:
            await _ready(master, write=False)
            continue
        except OSError:  # EIO: nobody has the terminal open any more
            return
        if not piece:
            return
        yield piece


async def write(master: int, data: bytes) -> None:
    """Type `data`, waiting while the terminal's input is full."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(master, view) :]
        except BlockingIOError:
            await _ready(master, write=True)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _ready(descriptor: int, *, write: bool) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
    add(descriptor, _resolve, future)
    try:
        await future
    finally:
        remove(descriptor)
