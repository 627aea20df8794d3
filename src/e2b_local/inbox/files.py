"""File operations, as the filesystem service and the /files route need them."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import sys
from typing import Any

from .entries import entry, replace_metadata
from .paths import Paths
from .wire import CHUNK_BYTES, Channel, Message, OpError

_CODES = {
    errno.ENOENT: "not_found",
    errno.EEXIST: "already_exists",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EROFS: "permission_denied",
    errno.ENOTDIR: "invalid_argument",
    errno.EISDIR: "invalid_argument",
    errno.ENAMETOOLONG: "invalid_argument",
    errno.ELOOP: "invalid_argument",
    errno.EINVAL: "invalid_argument",
    errno.ENXIO: "invalid_argument",  # a named pipe that nobody reads, or a socket
    errno.ERANGE: "invalid_argument",  # the name of an attribute is too long, or
    errno.E2BIG: "invalid_argument",  # its value
    errno.ENOTEMPTY: "failed_precondition",
    errno.EAGAIN: "failed_precondition",  # a named pipe that is full
    errno.EBUSY: "failed_precondition",
    errno.ETXTBSY: "failed_precondition",
    errno.EOPNOTSUPP: "failed_precondition",
    errno.ENOSPC: "resource_exhausted",
    errno.EDQUOT: "resource_exhausted",
}


def named(exc: OSError, doing: str) -> OpError:
    """Return the error the SDK can classify for what the operating system said."""
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return OpError("resource_exhausted", f"not enough disk space available: {doing}")
    return OpError(_CODES.get(exc.errno or 0, "internal"), f"{doing}: {os.strerror(exc.errno or 0)}")


class Files:
    """The files of this sandbox; every handler takes the request and, where it streams, the channel."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    async def stat(self, request: Message) -> Message:
        """Describe one path."""
        path = self._path(request)
        try:
            return {"entry": entry(path, self._paths)}
        except OSError as exc:
            if exc.errno == errno.ENOENT:
                raise OpError("not_found", f"file not found: '{request['path']}'") from exc
            raise named(exc, f"error reading '{request['path']}'") from exc

    async def list_dir(self, request: Message) -> Message:
        """List a folder down to `depth` levels (default and minimum 1)."""
        path = self._path(request)
        depth = max(1, int(request.get("depth") or 1))
        if not os.path.lexists(path):
            raise OpError("not_found", f"directory not found: '{request['path']}'")
        if not os.path.isdir(path):
            raise OpError("invalid_argument", f"path is not a directory: '{request['path']}'")
        try:
            return {"entries": await asyncio.to_thread(self._walk, path, depth)}
        except OSError as exc:
            raise named(exc, f"error reading directory '{request['path']}'") from exc

    async def make_dir(self, request: Message) -> Message:
        """Make a folder and those above it."""
        path = self._path(request)
        if os.path.isdir(path):
            raise OpError("already_exists", f"directory already exists: '{request['path']}'")
        if os.path.lexists(path):
            raise OpError(
                "invalid_argument", f"path already exists but it is not a directory: '{request['path']}'"
            )
        try:
            os.makedirs(path, mode=0o755)
            return {"entry": entry(path, self._paths)}
        except OSError as exc:
            raise named(exc, f"error creating directory '{request['path']}'") from exc

    async def move(self, request: Message) -> Message:
        """Rename a file or folder, making the folders above the new name."""
        source = self._paths.resolve(str(request.get("source", "")))
        destination = self._paths.resolve(str(request.get("destination", "")))
        if not os.path.lexists(source):
            raise OpError("not_found", f"source file not found: '{request['source']}'")
        try:
            os.makedirs(os.path.dirname(destination), mode=0o755, exist_ok=True)
            try:
                os.rename(source, destination)
            except OSError as exc:
                if exc.errno != errno.EXDEV:  # /home and /tmp are different filesystems
                    raise
                await asyncio.to_thread(shutil.move, source, destination)
            return {"entry": entry(destination, self._paths)}
        except OSError as exc:
            raise named(exc, f"error renaming '{request['source']}' to '{request['destination']}'") from exc

    async def remove(self, request: Message) -> Message:
        """Remove a file or a folder with all it holds; nothing there is success."""
        path = self._path(request)
        try:
            if os.path.isdir(path) and not os.path.islink(path):
                await asyncio.to_thread(shutil.rmtree, path)
            else:
                os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as exc:
            raise named(exc, f"error removing '{request['path']}'") from exc
        return {}

    async def read(self, request: Message, channel: Channel) -> Message:
        """Send `{"size": n}`, None if unknown, then the file in pieces, fewer if it shrinks meanwhile."""
        path = self._path(request)
        try:
            # Without O_NONBLOCK opening a named pipe would stop this agent.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as exc:
            raise OpError("not_found", f"path '{request['path']}' does not exist") from exc
        except OSError as exc:
            raise named(exc, f"error opening file '{request['path']}'") from exc
        try:
            info = os.fstat(descriptor)
            if stat.S_ISDIR(info.st_mode):
                raise OpError("invalid_argument", f"path '{request['path']}' is a directory")
            if not stat.S_ISREG(info.st_mode):
                raise OpError("invalid_argument", f"path '{request['path']}' is not a regular file")
            # Files of /proc have no size until they are read.
            left = info.st_size or sys.maxsize
            await channel.send({"size": info.st_size or None})
            while left > 0 and (piece := os.read(descriptor, min(left, CHUNK_BYTES))):
                left -= len(piece)
                await channel.send_data(piece)
        finally:
            os.close(descriptor)
        return {}

    async def write(self, request: Message, channel: Channel) -> Message:
        """Replace a file by the data that follows, up to a JSON message; make the folders above it.

        A channel that closes before that message leaves what was written so far, as an upload cut short does.
        """
        path = self._path(request)
        if os.path.isdir(path):
            raise OpError("invalid_argument", f"path is a directory: '{request['path']}'")
        doing = f"error writing file '{request['path']}'"
        metadata: dict[str, str] = request.get("metadata") or {}
        fresh = not os.path.lexists(path)
        try:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            descriptor = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC, 0o644
            )
        except OSError as exc:
            raise named(exc, doing) from exc
        try:
            if fresh:
                os.fchmod(descriptor, 0o644)  # whatever the mask is; watchers are told, as with E2B's daemon
            while isinstance(piece := await channel.receive(), bytes):
                view = memoryview(piece)
                while view:
                    view = view[os.write(descriptor, view) :]
            if piece is None:
                raise OpError("canceled", "upload ended early")
            replace_metadata(descriptor, metadata)
        except OSError as exc:
            raise named(exc, doing) from exc
        finally:
            os.close(descriptor)
        info: dict[str, Any] = {
            "name": os.path.basename(path),
            "type": "file",
            "path": self._paths.show(path),
        }
        if metadata:
            info["metadata"] = metadata
        return info

    def _path(self, request: Message) -> str:
        return self._paths.resolve(str(request.get("path", "")))

    def _walk(self, root: str, depth: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for name in sorted(os.listdir(root)):
            path = os.path.join(root, name)
            try:
                found.append(entry(path, self._paths))
            except OSError:
                continue  # removed meanwhile
            if depth > 1 and os.path.isdir(path) and not os.path.islink(path):
                found.extend(self._walk(path, depth - 1))
        return found
