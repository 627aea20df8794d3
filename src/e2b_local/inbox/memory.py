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
        if largest == _SYSTEM_V:
            _remove_system_v()
            return
        with contextlib.suppress(OSError):
            os.kill(largest, signal.SIGKILL)
        print(f"killed process {largest}: over the memory limit", file=sys.stderr)  # noqa: T201


# Memory that belongs to no process: System V objects stay when all that used them have ended.
_SYSTEM_V = 0
# What the kernel holds for these and tells nobody, at most or nearly so: 64 KB for each of the first thousand
# pipes of a user and 8 KB for others; 208 KB by default for a socket, which few ever fill.
_PIPE_BYTES = 16 * 1024
_SOCKET_BYTES = 64 * 1024
_FILE_BYTES = 256
_MESSAGE_BYTES, _SEMAPHORE_BYTES, _OBJECT_BYTES = 64, 64, 512


def memory_in_use() -> dict[int, int]:
    """Return bytes by process: its own pages, and its share of memory that has no name in a filesystem.

    Page tables, pipes and sockets count as well, the latter two as what they may come to.
    """
    used: dict[int, int] = {_SYSTEM_V: sum(size for *_, size in _system_v())}
    seen: set[object] = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                used[int(name)] = _of_process(int(name), seen)
    return used


def _of_process(pid: int, seen: set[object]) -> int:
    status = _fields(f"/proc/{pid}/status")
    shared = status.get("RssShmem", 0)
    if shared > _SHARED_WORTH:
        # A page that several share counts once. Of a process that hides it, as if it had all to itself.
        with contextlib.suppress(OSError):
            shared = _fields(f"/proc/{pid}/smaps_rollup").get("Pss_Shmem", shared)
    unmapped, held = _open_files(pid, seen) if pid != os.getpid() else (0, 0)
    return status.get("RssAnon", 0) + status.get("VmPTE", 0) + max(shared, unmapped) + held


def _open_files(pid: int, seen: set[object]) -> tuple[int, int]:
    """Return bytes of the unnamed files that a process has open, and of its pipes, sockets and the rest."""
    unnamed, held = 0, 0
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{number}"
            with contextlib.suppress(OSError):
                target = os.readlink(path)
                held += _FILE_BYTES
                if target.startswith("/memfd:"):
                    found = os.stat(path)
                    if (found.st_dev, found.st_ino) not in seen:
                        seen.add((found.st_dev, found.st_ino))
                        unnamed += found.st_blocks * 512
                elif target.startswith(("pipe:", "socket:")) and target not in seen:
                    seen.add(target)
                    held += _PIPE_BYTES if target.startswith("pipe:") else _SOCKET_BYTES
    return unnamed, held


def _system_v() -> Iterator[tuple[str, int, int]]:
    """Give kind, id and bytes of each System V object; of shared memory what no process has attached."""
    for kind, identifier in (("shm", "shmid"), ("msg", "msqid"), ("sem", "semid")):
        with contextlib.suppress(OSError), open(f"/proc/sysvipc/{kind}") as file:
            names = file.readline().split()
            for line in file:
                fields = dict(zip(names, line.split(), strict=False))
                if fields.get("nattch", "0") == "0":
                    yield kind, int(fields[identifier]), _object_bytes(fields)


def _object_bytes(fields: dict[str, str]) -> int:
    content = int(fields.get("rss", 0)) + int(fields.get("cbytes", 0))
    parts = int(fields.get("qnum", 0)) * _MESSAGE_BYTES + int(fields.get("nsems", 0)) * _SEMAPHORE_BYTES
    return content + parts + _OBJECT_BYTES


def _remove_system_v() -> None:
    import ctypes

    libc, remove = ctypes.CDLL(None), 0  # IPC_RMID
    for kind, identifier, _ in _system_v():
        match kind:
            case "shm":
                libc.shmctl(identifier, remove, None)
            case "msg":
                libc.msgctl(identifier, remove, None)
            case _:
                libc.semctl(identifier, 0, remove)
    print("removed System V objects: over the memory limit", file=sys.stderr)  # noqa: T201


def _fields(path: str) -> dict[str, int]:
    found = {}
    with open(path) as file:
        for line in file:
            name, _, value = line.partition(":")
            if value.endswith("kB\n"):
                found[name] = int(value.split()[0]) * 1024
    return found
