"""What a sandbox may use at most, held without control groups, which may be missing or not writable.

Each process has hard limits of its own, which no program can raise again; the memory of all of them together
is watched. Files live on memory filesystems whose sizes are fixed from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import sys

_OPEN_FILES = 8192
_CHECK_S = 1.0
# Above half of the limit a greedy program may be at the whole within the second.
_CHECK_OFTEN_S = 0.1
_CHECK_IDLE_S = 4.0


def limit_processes(*, memory_bytes: int, processes: int) -> None:
    """Limit this process and all it will start: the memory of each, and their number.

    The number counts the processes and threads of one user, which is this sandbox's alone.
    """
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_NOFILE, _OPEN_FILES)
    # The data segment, not the address space: programs may reserve far more than they ever touch.
    _lower(resource.RLIMIT_DATA, memory_bytes)
    if hasattr(resource, "RLIMIT_NPROC"):
        _lower(resource.RLIMIT_NPROC, processes)


def limit_cpu(pid: int, cpu_s: int) -> None:
    """Limit the CPU time of a child and of each process it will start; 0 does not limit it.

    Not of this process, which serves for as long as the sandbox lives.
    """
    if cpu_s and hasattr(resource, "prlimit"):
        with contextlib.suppress(OSError, ValueError):
            # At the first limit the process is told so (SIGXCPU), at the second it is killed.
            resource.prlimit(pid, resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))


async def watch_memory(limit_bytes: int) -> None:
    """Kill the largest process whenever all of them together use more than the limit; never returns."""
    page = os.sysconf("SC_PAGE_SIZE")
    before, wait_s = 0, _CHECK_S
    while True:
        used = {pid: pages * page for pid, pages in _private_pages().items()}
        total = sum(used.values())
        if total > limit_bytes:
            used.pop(os.getpid(), None)
            if used:
                largest = max(used, key=lambda pid: used[pid])
                with contextlib.suppress(OSError):
                    os.kill(largest, signal.SIGKILL)
                print(f"killed process {largest}: over the memory limit", file=sys.stderr)  # noqa: T201
        if total > limit_bytes / 2:
            wait_s = _CHECK_OFTEN_S
        elif total == before:
            wait_s = min(2 * wait_s, _CHECK_IDLE_S)  # nothing moves: an idle sandbox should cost nothing
        else:
            wait_s = _CHECK_S
        before = total
        await asyncio.sleep(wait_s)


def _private_pages() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                with open(f"/proc/{name}/statm", "rb") as file:
                    _, resident, shared, *_ = map(int, file.read().split())
                found[int(name)] = resident - shared
    return found


def _lower(which: int, wanted: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(which, (wanted, wanted))
