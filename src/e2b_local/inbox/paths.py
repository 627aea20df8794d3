"""How a path given through the SDK is read, and how a path is shown to it."""

from __future__ import annotations

import dataclasses
import os

PUBLIC_HOME = "/home/user"


@dataclasses.dataclass(frozen=True)
class Paths:
    """The home folder a relative path starts from.

    With isolation `home` is `/home/user` itself. Without, it is a folder of the host, and paths under
    `/home/user` mean that folder, so that a program written for a sandbox finds its files.
    """

    home: str

    def resolve(self, path: str) -> str:
        """Return the absolute path that `path` names: `~`, relative and `/home/user` paths start at home."""
        if path in ("", "~"):
            return self.home
        if path.startswith("~/"):
            return os.path.normpath(os.path.join(self.home, path[2:]))
        path = os.path.normpath(os.path.join(PUBLIC_HOME, path))
        if path == PUBLIC_HOME or path.startswith(PUBLIC_HOME + "/"):
            return self.home + path[len(PUBLIC_HOME) :]
        # normpath keeps two leading slashes, which POSIX allows and no caller means.
        return "/" + path.lstrip("/")

    def show(self, path: str) -> str:
        """Return the path as the SDK should see it."""
        if path == self.home or path.startswith(self.home + "/"):
            return PUBLIC_HOME + path[len(self.home) :]
        return path
