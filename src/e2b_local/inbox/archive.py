"""Packing and unpacking what the user of this sandbox can write."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import subprocess
import tempfile
from typing import IO

from .reaper import Reaper
from .wire import CHUNK_BYTES, Channel, Message, OpError

_TAR = ["tar", "--xattrs", "--xattrs-include=user.*", "-C", "/"]


class Kept:
    """What a user has put into the filesystems of an isolated box, wherever it was allowed to.

    Every such box has the same, so that each name is the same in another.
    """

    def __init__(self, mounts: list[str]) -> None:
        # What is there at the start is not the user's: the system's folders, the way to Python.
        self._folders: dict[str, int] = {}
        self._given: set[str] = set()
        for mount in mounts:
            self._look(mount, os.lstat(mount).st_dev)

    def names(self) -> list[str]:
        """Return what to pack, from the root on."""
        found = []
        for folder, device in self._folders.items():
            with contextlib.suppress(OSError):
                info = os.lstat(folder)
                if stat.S_ISDIR(info.st_mode) and info.st_dev == device:
                    found += [os.path.join(folder, name) for name in os.listdir(folder)]
        return [path.lstrip("/") for path in found if path not in self._given]

    def packed(self) -> list[str]:
        """Return the options that rename what is packed; here none."""
        return []

    def unpacked(self) -> list[str]:
        """Return the options that rename it back."""
        return []

    def _look(self, folder: str, device: int) -> None:
        self._folders[folder] = device
        self._given.add(folder)
        for entry in os.scandir(folder):
            self._given.add(entry.path)
            if entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_dev == device:
                self._look(entry.path, device)


class Folders:
    """The folders of a box without isolation.

    Each is packed under its number: another box has its home elsewhere. Only what is in it: of /tmp the
    folder itself is not the user's, and unpacking it would fail.
    """

    def __init__(self, folders: list[str]) -> None:
        self._folders = folders
        self._given = {folder: frozenset(os.listdir(folder)) for folder in folders}

    def names(self) -> list[str]:
        """Return what to pack, from the root on."""
        return [
            f"{folder.lstrip('/')}/{name}"
            for folder in self._folders
            for name in os.listdir(folder)
            if name not in self._given[folder]
        ]

    def packed(self) -> list[str]:
        """Return the options that put a number in the place of a folder's name."""
        return [f"--transform=s,^{each.lstrip('/')},{n},S" for n, each in enumerate(self._folders)]

    def unpacked(self) -> list[str]:
        """Return the options that put the names of this box's own folders in the place of their numbers."""
        return [f"--transform=s,^{n},{each.lstrip('/')},S" for n, each in enumerate(self._folders)]


class Archive:
    """Moves what the user can write through a channel as a tar stream."""

    def __init__(self, kept: Kept | Folders, reaper: Reaper) -> None:
        self._kept = kept
        self._reaper = reaper

    async def pack(self, request: Message, channel: Channel) -> Message:
        """Send the folders; what cannot be read is left out."""
        # Holes stay holes: as zeros, one empty file could be larger than the host's disk.
        command = [
            *_TAR,
            "--create",
            "--sparse",
            "--ignore-failed-read",
            "--warning=no-file-ignored",
            "--file=-",
            *self._kept.packed(),
        ]
        names = self._kept.names()
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
            *self._kept.unpacked(),
        ]
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
