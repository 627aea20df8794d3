"""The project as it was sent: what changes are measured against, and where files are put back from."""

import asyncio
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Protocol

from pydantic import TypeAdapter

from agent.bounded import parsed_json
from agent.errors import SandboxError
from agent.repair.ignoring import Scope
from agent.repair.tree import Entry, Tree, text_entry
from agent.repair.workspace import Workspace


class Baseline(Protocol):
    """The files as they were."""

    tree: Tree
    """The files that are compared."""
    scope: Scope

    async def put_back(self, work: Workspace, paths: Collection[str]) -> None:
        """Write files as they were, whatever has become of them."""

    async def read(self, work: Workspace, paths: Collection[str]) -> dict[str, bytes]:
        """Return the content of files; links are left out."""


class Sent:
    """A project that came as a map of files: state holds all of it, and a lost sandbox loses nothing.

    The map knows no modes: a file that begins with `#!` is made executable.
    """

    def __init__(self, project: Mapping[str, str]) -> None:
        self._project = project
        self.scope = Scope.of(project)
        self.scripts = {path for path, text in project.items() if text.startswith("#!")}
        self.tree: Tree = {
            path: text_entry(text, executable=path in self.scripts)
            for path, text in project.items()
            if not self.scope.ignored(path)
        }

    async def put_all(self, work: Workspace, *, anew: bool = False) -> None:
        """Write all files that were sent; `anew` where the project's folder is empty."""
        await work.put(self._contents(self._project), executable=self.scripts, anew=anew)

    async def put_back(self, work: Workspace, paths: Collection[str]) -> None:
        """Write files from the map."""
        await work.put(self._contents(paths), executable=self.scripts)

    async def read(self, work: Workspace, paths: Collection[str]) -> dict[str, bytes]:
        """Return files from the map."""
        return self._contents(path for path in paths if path in self._project)

    def _contents(self, paths: Iterable[str]) -> dict[str, bytes]:
        return {path: self._project[path].encode("utf-8", "replace") for path in paths}


_TREE = TypeAdapter(dict[str, Entry])


class Uploaded:
    """A project that came as an archive: only its sandbox holds it.

    State holds a digest of the list of its files, and the list their digests: what the sandbox says of the
    baseline is checked against it, since the agent can write wherever the copy lies.
    """

    def __init__(self, tree: Tree) -> None:
        self.scope = Scope.of(tree)
        self.tree = {path: entry for path, entry in tree.items() if not self.scope.ignored(path)}

    @classmethod
    async def of(cls, work: Workspace, digest: str) -> "Uploaded":
        """Return the baseline that the sandbox holds.

        Raises:
            SandboxError: it is gone or was changed.
        """
        listing = await work.baseline()
        if hashlib.sha256(listing).hexdigest() != digest:
            raise SandboxError(
                "the list of the project's original files was changed in the sandbox: what the repair did "
                "cannot be told any more. Upload the archive again and start anew."
            )
        try:
            return cls(_TREE.validate_python(await asyncio.to_thread(parsed_json, listing)))
        except ValueError as exc:
            raise SandboxError("the list of the project's original files is not one") from exc

    async def keep(self, work: Workspace) -> str:
        """Write the list into the sandbox, and return the digest that belongs into state."""
        listing = json.dumps({path: asdict(entry) for path, entry in sorted(self.tree.items())}).encode()
        await work.keep_baseline(listing)
        return hashlib.sha256(listing).hexdigest()

    async def put_back(self, work: Workspace, paths: Collection[str]) -> None:
        """Copy files from the kept copy, and check them."""
        if not paths:
            return
        await work.restore(paths)
        now = await work.snapshot(self.scope)
        self._check([path for path in paths if now.get(path) != self.tree[path]])

    async def read(self, work: Workspace, paths: Collection[str]) -> dict[str, bytes]:
        """Return files from the kept copy, checked."""
        held = [path for path in paths if path in self.tree and not self.tree[path].link]
        found = await work.read(held, folder="../.repair/baseline")
        digests = {path: hashlib.sha256(data).hexdigest() for path, data in found.items()}
        self._check([path for path in held if digests.get(path) != self.tree[path].sha256])
        return found

    def _check(self, wrong: list[str]) -> None:
        if wrong:
            raise SandboxError(
                f"the kept copy of the project was changed in the sandbox ({', '.join(wrong[:3])}). Upload "
                "the archive again and start anew."
            )
