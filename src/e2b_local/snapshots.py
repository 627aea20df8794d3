"""Snapshots: the files of a sandbox at one moment, to start others from."""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
import secrets

from e2b_local.archives import save
from e2b_local.sandbox import Sandbox, now


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """An archive of what a sandbox's user could write, and what it was made from."""

    id: str
    names: tuple[str, ...]
    sandbox_id: str
    archive: pathlib.Path
    created_at: datetime.datetime


class Snapshots:
    """The snapshots of this server's run; they end with it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._snapshots: dict[str, Snapshot] = {}

    async def take(self, sandbox: Sandbox, name: str | None) -> Snapshot:
        """Archive a running sandbox's files; a name moves from the snapshot that had it.

        Raises:
            OpError: the files could not be read, or there is no room for them.
            BoxGoneError: the sandbox ended meanwhile.
        """
        identifier = secrets.token_hex(10)
        archive = self._folder / f"snapshot-{identifier}.tar"
        await save(sandbox.box, archive)
        if name is not None:
            for other in list(self._snapshots.values()):
                names = tuple(each for each in other.names if each != name)
                self._snapshots[other.id] = dataclasses.replace(other, names=names)
        snapshot = Snapshot(identifier, (name,) if name else (), sandbox.id, archive, now())
        self._snapshots[identifier] = snapshot
        return snapshot

    def find(self, name: str) -> Snapshot | None:
        """Return the snapshot with this id or name."""
        if name in self._snapshots:
            return self._snapshots[name]
        return next((each for each in self._snapshots.values() if name in each.names), None)

    def all(self) -> list[Snapshot]:
        """Return every snapshot, the newest first."""
        return list(self._snapshots.values())[::-1]

    def delete(self, name: str) -> bool:
        """Remove a snapshot; return whether there was one. Sandboxes made from it are not touched."""
        snapshot = self.find(name)
        if snapshot is None:
            return False
        del self._snapshots[snapshot.id]
        snapshot.archive.unlink(missing_ok=True)
        return True
