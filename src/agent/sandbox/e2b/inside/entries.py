"""Files and folders of the sandbox: where a path leads, what an entry is, how it is told."""

from __future__ import annotations

import base64
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than this program runs
    from typing import Any

IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
HOME = "/home/user"


def at_home(path: str) -> str:
    """Return a path below the home folder as this sandbox has it; without isolation it lies elsewhere."""
    below = path == HOME or path.startswith(HOME + "/")
    return os.environ.get("HOME", HOME) + path[len(HOME) :] if below else path


def resolved(path: str, root: str, also: list[str], of_link: bool = False) -> str:
    """Return where a path leads, links followed; refuse one that leads out of the folders.

    Args:
        path: absolute.
        root: the work folder.
        also: other folders that may be read.
        of_link: the path's last part is meant itself, should it be a link.
    """
    path = at_home(path)
    if of_link:
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    else:
        real = os.path.realpath(path)
    for folder in [root, *also]:
        base = os.path.realpath(at_home(folder))
        if real == base or real.startswith(base.rstrip("/") + "/"):
            return real
    raise PermissionError("a link leads out of the work folder")


def openable(path: str, root: str, also: list[str]) -> str:
    """Return where a path leads; refuse what opening would wait for, such as a pipe nobody writes to."""
    real = resolved(path, root, also)
    if os.path.exists(real) and kind(os.stat(real).st_mode) == "other":
        raise OSError("it is neither a file nor a folder, but a pipe, a socket or a device")
    return real


def image_type(data: bytes) -> str | None:
    """Return the MIME type of an image by its first bytes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for start, mime in IMAGES if data.startswith(start)), None)


def kind(mode: int) -> str:
    """Return what an entry is."""
    if stat.S_ISLNK(mode):
        return "link"
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def told(name: str, entry: Any) -> dict[str, Any]:
    """Return what is said of an entry."""
    status = entry.stat(follow_symlinks=False)
    return {"path": readable(name), "kind": kind(status.st_mode), "size": status.st_size}


def readable(name: str) -> str:
    """Return a name that may not be UTF-8 as text that is."""
    return os.fsencode(name).decode("utf-8", "replace")


def decoded(data: bytes) -> str:
    """Return bytes as text."""
    return data.decode("utf-8", "replace")


def encoded(data: bytes) -> str:
    """Return bytes as base64."""
    return base64.b64encode(data).decode()
