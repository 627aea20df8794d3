"""Packing and unpacking what the user of this sandbox can write."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from typing import IO

from .reaper import Reaper
from .wire import CHUNK_BYTES, Channel, Message, OpError

_TAR = ["tar", "--xattrs", "--xattrs-include=user.*", "-C", "/"]


class Archive:
    """Moves the writable folders through a channel as a tar stream."""

    def __init__(self, folders: list[str], reaper: Reaper) -> None:
        self._folders = folders
        # What is there at the start is not the user's: the way to a Python that is mounted below.
        self._given = {folder: frozenset(os.listdir(folder)) for folder in folders}
        self._reaper = reaper

    async def pack(self, request: Message, channel: Channel) -> Message:
        """Send the folders; what cannot be read is left out."""
        # Each folder is packed under its number: another box may have its home elsewhere. Of /tmp only what
        # is in it: the folder itself is not the user's, and unpacking it would fail.
        # Holes stay holes: as zeros, one empty file could be larger than the host's disk.
        command = [
            *_TAR,
            "--create",
            "--sparse",
            "--ignore-failed-read",
            "--warning=no-file-ignored",
            "--file=-",
        ]
        names = []
        for number, folder in enumerate(self._folders):
            command.append(f"--transform=s,^{folder.lstrip('/')},{number},S")
            names += [
                f"{folder.lstrip('/')}/{name}"
                for name in os.listdir(folder)
                if name not in self._given[folder]
            ]
        with tempfile.TemporaryFile() as listing:
            listing.write(b"".join(os.fsencode(name) + b"\0" for name in names))
            listing.seek(0)
            command += ["--null", "--files-from=-"]
            process = self._start(command, stdin=listing.fileno(), stdout=subprocess.PIPE)
        status = self._reaper.watch(process.pid)
        assert process.stdout is not None
        try:
            while piece := await asyncio.to_thread(process.stdout.read, CHUNK_BYTES):
                await channel.send_data(piece)
        finally:
            process.stdout.close()
            code = os.waitstatus_to_exitcode(await status)
            process.returncode = code
        if code not in (0, 1):  # 1: a file changed while it was read
            raise OpError("internal", f"packing the files failed (tar: {code})")
        return {}

    async def unpack(self, request: Message, channel: Channel) -> Message:
        """Receive the folders and put them in place of what is there."""
        command = [
            *_TAR,
            "--extract",
            "--preserve-permissions",
            "--no-overwrite-dir",
            "--file=-",
        ]
        for number, folder in enumerate(self._folders):
            command += [f"--transform=s,^{number},{folder.lstrip('/')},S"]
        process = self._start(command, stdin=subprocess.PIPE)
        status = self._reaper.watch(process.pid)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            while isinstance(piece := await channel.receive(), bytes):
                await asyncio.to_thread(_write_all, process.stdin, piece)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.returncode = os.waitstatus_to_exitcode(await status)
        if process.returncode != 0:
            raise OpError("resource_exhausted", f"unpacking the files failed (tar: {process.returncode})")
        return {}

    def _start(
        self, command: list[str], *, stdin: int = subprocess.DEVNULL, stdout: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        # What tar complains about goes where this agent's own complaints go: the server's log.
        return subprocess.Popen(command, stdin=stdin, stdout=stdout, bufsize=0)


def _write_all(pipe: IO[bytes], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[pipe.write(view) :]
