"""Stopping, continuing and ending every process of a sandbox from within."""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def adopt_orphans() -> None:
    """Become the parent of every orphaned descendant, and end when the server does (Linux only).

    Process 1 of a sandbox adopts orphans anyway. The parent-death signal is set here because changing the
    user id, which happens just before this program starts, clears it. No program of the sandbox may trace
    this one: stopped by a debugger it could not end the sandbox when the server is gone.
    """
    if sys.platform != "linux":
        return
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    set_parent_death_signal, set_dumpable, set_child_subreaper = 1, 4, 36
    isolated = os.getpid() == 1
    prctl(set_parent_death_signal, signal.SIGKILL if isolated else signal.SIGTERM, 0, 0, 0)
    prctl(set_dumpable, 0, 0, 0, 0)
    prctl(set_child_subreaper, 1, 0, 0, 0)


def signal_all(number: signal.Signals) -> None:
    """Signal every other process of this sandbox."""
    if os.getpid() == 1:
        # One call that no fork escapes: the kernel walks the process list under its lock, and a process with
        # a pending signal cannot finish a fork.
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, number)
        return
    seen: set[int] = set()
    while fresh := descendants(os.getpid()) - seen:
        for pid in fresh:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        seen |= fresh


def descendants(root: int) -> set[int]:
    """Return the ids of all processes below `root`."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat", "rb") as file:
                # The command name is in parentheses and may itself hold any character.
                parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    left = [root]
    while left:
        for child in children.get(left.pop(), []):
            if child not in found:
                found.add(child)
                left.append(child)
    return found
