"""Paths a model may name, confined to the work folder."""

import posixpath

HOME = "/home/user"
"""The home folder of an E2B sandbox, the work folder unless a graph names another."""


def confined(path: str, root: str) -> str:
    """Return the absolute path in the sandbox that `path` names.

    The check is on the words: a link inside the work folder that points out of it is followed, which reaches
    nothing that a shell command could not. The sandbox, not this check, is what protects the host.

    Args:
        path: relative to the work folder, or absolute within it.
        root: the work folder.

    Raises:
        PermissionError: the path leaves the work folder.
        ValueError: never; a NUL byte is a PermissionError too, so that callers have one case.
    """
    whole = posixpath.normpath(posixpath.join(root, path or "."))
    if "\0" in path or not (whole == root or whole.startswith(root.rstrip("/") + "/")):
        raise PermissionError(f"{path!r} is outside the work folder {root}; use a path inside it")
    return whole


def shown(path: str, root: str) -> str:
    """Return a path as the model is shown it: relative to the work folder."""
    return posixpath.relpath(path, root)
