"""A program that limits how many files the filesystems of a box can hold, which `bwrap` has no option for.

It enters the namespaces given as open files (the user namespace that owns the mounts first, where there is
one) and remounts each target: `python mount_limits.py FILES TARGET TYPE FLAGS OPTIONS …`. It stands alone, so
that it starts quickly.
"""

from __future__ import annotations

import ctypes
import os
import sys

_REMOUNT = 0x20  # MS_REMOUNT of linux/mount.h
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Do what the arguments say, or end with the first error."""
    namespaces, *mounts = sys.argv[1:]
    for namespace in namespaces.split(","):
        # os.setns is of Python 3.12.
        _check(_libc.setns(int(namespace), 0), "setns")
    while mounts:
        target, kind, flags, options, *mounts = mounts
        flagged = ctypes.c_ulong(_REMOUNT | int(flags))
        _check(_libc.mount(None, target.encode(), kind.encode(), flagged, options.encode()), target)


def _check(result: int, doing: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        sys.exit(f"{doing}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
