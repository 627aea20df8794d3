"""Watching the memory of all processes of a sandbox together, which no limit of a single process bounds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator

_CHECK_S = 1.0
# Above half of the limit a greedy program may be at the whole within the second.
_CHECK_OFTEN_S = 0.1
_CHECK_IDLE_S = 4.0
_CHECK_LAZILY_S = 30.0
# Less than this is not worth the kernel's walk through all pages of a process.
_SHARED_WORTH = 16 * 1024 * 1024


class MemoryWatch:
    """Kills the largest process whenever all of them use more than the limit."""

    def __init__(self, limit_bytes: int, *, lazy: bool) -> None:
        """Watch nothing yet; `lazy` says that something else bounds the memory too.

        An idle sandbox is then left alone for longer.
        """
        self._limit = limit_bytes
        self._idle_s = _CHECK_LAZILY_S if lazy else _CHECK_IDLE_S
        self._stirred = asyncio.Event()

    def stir(self) -> None:
        """Tell that something was started, so that it is looked at soon."""
        self._stirred.set()

    async def run(self) -> None:
        """Watch; never returns."""
        before, wait_s = 0, _CHECK_S
        while True:
            used = memory_in_use()
            total = sum(used.values())
            if total > self._limit:
                self._relieve(used)
            if total > self._limit / 2:
                wait_s = _CHECK_OFTEN_S
            elif total == before:
                wait_s = min(2 * wait_s, self._idle_s)  # nothing moves: an idle sandbox should cost nothing
            else:
                wait_s = _CHECK_S
            before = total
            if wait_s <= _CHECK_S:
                await asyncio.sleep(wait_s)
                continue
            self._stirred.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stirred.wait(), wait_s)
                wait_s = _CHECK_S

    def _relieve(self, used: dict[int, int]) -> None:
        used.pop(os.getpid(), None)
        if not used:
            return
        largest = max(used, key=lambda pid: used[pid])
        if largest == _SEGMENTS:
            _remove_segments()
            return
        with contextlib.suppress(OSError):
            os.kill(largest, signal.SIGKILL)
        print(f"killed process {largest}: over the memory limit", file=sys.stderr)  # noqa: T201


# Memory that belongs to no process: System V segments stay when all that used them have ended.
_SEGMENTS = 0


def memory_in_use() -> dict[int, int]:
    """Return bytes by process: its own pages and its share of memory that has no name in a filesystem."""
    used: dict[int, int] = {_SEGMENTS: sum(size for _, size in _segments())}
    seen: set[tuple[int, int]] = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                used[int(name)] = _of_process(int(name), seen)
    return used


def _of_process(pid: int, seen: set[tuple[int, int]]) -> int:
    status = _fields(f"/proc/{pid}/status")
    shared = status.get("RssShmem", 0)
    if shared > _SHARED_WORTH:
        # A page that several share counts once. Of a process that hides it, as if it had all to itself.
        with contextlib.suppress(OSError):
            shared = _fields(f"/proc/{pid}/smaps_rollup").get("Pss_Shmem", shared)
    unmapped = sum(_memfds(pid, seen)) if pid != os.getpid() else 0
    return status.get("RssAnon", 0) + max(shared, unmapped)


def _memfds(pid: int, seen: set[tuple[int, int]]) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{number}").startswith("/memfd:"):
                    found = os.stat(f"/proc/{pid}/fd/{number}")
                    if (found.st_dev, found.st_ino) not in seen:
                        seen.add((found.st_dev, found.st_ino))
                        yield found.st_blocks * 512


def _segments() -> Iterator[tuple[int, int]]:
    """Give id and resident bytes of each System V segment that no process has attached."""
    with contextlib.suppress(OSError), open("/proc/sysvipc/shm") as file:
        names = file.readline().split()
        for line in file:
            fields = dict(zip(names, line.split(), strict=False))
            if fields.get("nattch") == "0":
                yield int(fields["shmid"]), int(fields["rss"])


def _remove_segments() -> None:
    import ctypes

    remove = 0  # IPC_RMID
    for identifier, _ in _segments():
        ctypes.CDLL(None).shmctl(identifier, remove, None)
    print("removed shared memory: over the memory limit", file=sys.stderr)  # noqa: T201


def _fields(path: str) -> dict[str, int]:
    found = {}
    with open(path) as file:
        for line in file:
            name, _, value = line.partition(":")
            if value.endswith("kB\n"):
                found[name] = int(value.split()[0]) * 1024
    return found
