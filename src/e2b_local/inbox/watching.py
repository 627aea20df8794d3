"""Watching folders for the SDK: as a stream, or as events that are fetched now and then."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import os
import uuid

from . import inotify
from .entries import entry
from .paths import Paths
from .wire import Channel, Message, OpError

_TYPES = {
    inotify.CREATE: "EVENT_TYPE_CREATE",
    inotify.MOVED_TO: "EVENT_TYPE_CREATE",
    inotify.MODIFY: "EVENT_TYPE_WRITE",
    inotify.DELETE: "EVENT_TYPE_REMOVE",
    inotify.MOVED_FROM: "EVENT_TYPE_RENAME",
    inotify.ATTRIB: "EVENT_TYPE_CHMOD",
}
# Events nobody fetches; older ones are dropped then.
_KEPT_EVENTS = 10_000


class Watcher:
    """One watched folder and, if wanted, all folders below it."""

    def __init__(self, root: str, paths: Paths, *, recursive: bool, entries: bool) -> None:
        self.events: collections.deque[Message] = collections.deque(maxlen=_KEPT_EVENTS)
        self.happened = asyncio.Event()
        self._root = root
        self._paths = paths
        self._recursive = recursive
        self._entries = entries
        self._notifier = inotify.Notifier()
        self._add(root)
        asyncio.get_running_loop().add_reader(self._notifier.descriptor, self.take)

    def take(self) -> None:
        """Turn what the system has told so far into events."""
        for path, what, is_folder in self._notifier.events():
            if is_folder and self._recursive and what in (inotify.CREATE, inotify.MOVED_TO):
                with contextlib.suppress(OSError):  # gone again
                    self._add(path)
            event: Message = {
                "name": os.path.relpath(path, self._root),
                "type": _TYPES.get(what, "EVENT_TYPE_UNSPECIFIED"),
            }
            if self._entries:
                with contextlib.suppress(OSError):
                    event["entry"] = entry(path, self._paths)
            self.events.append(event)
            self.happened.set()

    def close(self) -> None:
        """Stop watching."""
        asyncio.get_running_loop().remove_reader(self._notifier.descriptor)
        self._notifier.close()

    def _add(self, folder: str) -> None:
        self._notifier.add(folder)
        if self._recursive:
            for found, folders, _files in os.walk(folder):
                for name in folders:
                    with contextlib.suppress(OSError):
                        self._notifier.add(os.path.join(found, name))


class Watching:
    """The watchers of this sandbox."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._watchers: dict[str, Watcher] = {}

    async def watch(self, request: Message, channel: Channel) -> Message:
        """Stream events, after a first message that says that watching has begun."""
        watcher = self._start(request)
        try:
            await channel.send_data(json.dumps({"start": {}}).encode())
            while True:
                await watcher.happened.wait()
                watcher.happened.clear()
                while watcher.events:
                    await channel.send_data(json.dumps({"filesystem": watcher.events.popleft()}).encode())
        finally:
            watcher.close()

    async def create(self, request: Message) -> Message:
        """Begin to watch and keep events until they are fetched."""
        identifier = uuid.uuid4().hex
        self._watchers[identifier] = self._start(request)
        return {"watcherId": identifier}

    async def fetch(self, request: Message) -> Message:
        """Return the events since the last fetch."""
        watcher = self._find(request)
        watcher.take()
        events = list(watcher.events)
        watcher.events.clear()
        return {"events": events}

    async def remove(self, request: Message) -> Message:
        """Stop a watcher."""
        watcher = self._find(request)
        del self._watchers[str(request.get("watcherId"))]
        watcher.close()
        return {}

    def _find(self, request: Message) -> Watcher:
        watcher = self._watchers.get(str(request.get("watcherId")))
        if watcher is None:
            raise OpError("not_found", f"watcher with id {request.get('watcherId')} not found")
        return watcher

    def _start(self, request: Message) -> Watcher:
        given = str(request.get("path", ""))
        path = self._paths.resolve(given)
        if not os.path.lexists(path):
            raise OpError("not_found", f"path {given} not found")
        if not os.path.isdir(path):
            raise OpError("invalid_argument", f"path {given} is not a directory")
        try:
            return Watcher(
                path,
                self._paths,
                recursive=bool(request.get("recursive")),
                entries=bool(request.get("includeEntry")),
            )
        except OSError as exc:
            raise OpError("internal", f"error watching {given}: {exc.strerror}") from exc
