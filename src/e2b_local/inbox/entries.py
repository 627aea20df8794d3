"""What the SDK is told about one file or folder (EntryInfo of the filesystem service)."""

from __future__ import annotations

import datetime
import grp
import os
import pwd
import stat
from typing import Any

from .paths import Paths

_XATTR_PREFIX = "user.e2b."


def entry(path: str, paths: Paths) -> dict[str, Any]:
    """Return EntryInfo in its JSON form; a link is described by what it points to, and names its target.

    Raises:
        OSError: nothing is there.
    """
    link = os.lstat(path)
    info = link
    target: str | None = None
    if stat.S_ISLNK(link.st_mode):
        target = os.path.realpath(path)
        try:
            info = os.stat(path)
        except OSError:
            info = link  # a dangling or circular link is still an entry
    found: dict[str, Any] = {
        "name": os.path.basename(path) or "/",
        "type": _type(info.st_mode),
        "path": paths.show(path),
        "size": str(info.st_size),  # int64 is a string in protobuf JSON
        "mode": stat.S_IMODE(info.st_mode) & 0o777,
        "permissions": permissions(link.st_mode if target else info.st_mode),
        "owner": _user(info.st_uid),
        "group": _group(info.st_gid),
        "modifiedTime": datetime.datetime.fromtimestamp(info.st_mtime, datetime.UTC).isoformat(),
    }
    if target is not None:
        found["symlinkTarget"] = paths.show(target)
    metadata = read_metadata(path)
    if metadata:
        found["metadata"] = metadata
    return found


def permissions(mode: int) -> str:
    """Return the mode as Go prints it: like `ls -l`, but `L` for a link."""
    text = stat.filemode(mode)
    return "L" + text[1:] if text[0] == "l" else text


def read_metadata(path: str) -> dict[str, str]:
    """Return the user's metadata of a file, kept in extended attributes `user.e2b.*`."""
    try:
        names = os.listxattr(path, follow_symlinks=True)
        return {
            name[len(_XATTR_PREFIX) :]: os.getxattr(path, name).decode(errors="replace")
            for name in names
            if name.startswith(_XATTR_PREFIX)
        }
    except (OSError, AttributeError):  # no such attributes on this filesystem or platform
        return {}


def replace_metadata(descriptor: int, metadata: dict[str, str]) -> None:
    """Make `metadata` the whole metadata of an open file: each upload replaces what was there.

    Raises:
        OSError: the filesystem cannot keep it.
    """
    if not hasattr(os, "listxattr"):
        return
    try:
        old = [name for name in os.listxattr(descriptor) if name.startswith(_XATTR_PREFIX)]
    except OSError:
        old = []
    for name in old:
        os.removexattr(descriptor, name)
    for key, value in metadata.items():
        os.setxattr(descriptor, _XATTR_PREFIX + key, value.encode())


def _type(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "FILE_TYPE_DIRECTORY"
    if stat.S_ISREG(mode):
        return "FILE_TYPE_FILE"
    return "FILE_TYPE_SYMLINK" if stat.S_ISLNK(mode) else "FILE_TYPE_UNSPECIFIED"


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
