"""Paths a model may name, confined to the work folder."""

import posixpath

HOME = "/home/user"
"""The home folder of an E2B sandbox, the work folder unless a graph names another."""


def confined(path: str, root: str, also: str | None = None) -> str:
    """Return the absolute path in the sandbox that `path` names.

    The check is on the words; links are followed and checked in the sandbox. It keeps a model to its folder.
    A shell command reaches more: the sandbox, not this check, is what protects the host.

    Args:
        path: relative to the work folder, or absolute within it; `~/` is the home folder, as in a shell.
        root: the work folder.
        also: another folder that is allowed.

    Raises:
        PermissionError: the path leaves the work folder.
        ValueError: never; a NUL byte is a PermissionError too, so that callers have one case.
    """
    given = HOME + path[1:] if path == "~" or path.startswith("~/") else path
    whole = posixpath.normpath(posixpath.join(root, given or "."))
    folders = [root, also] if also else [root]
    if "\0" in path or not any(whole == one or whole.startswith(one.rstrip("/") + "/") for one in folders):
        raise PermissionError(f"{path!r} is outside the work folder {root}; use a path inside it")
    return whole


def shown(path: str, root: str) -> str:
    """Return a path as the model is shown it: relative to the work folder, where it is in it."""
    relative = posixpath.relpath(path, root)
    return path if relative.startswith("../") else relative
