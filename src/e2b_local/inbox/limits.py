"""What a sandbox may use at most, held without control groups, which may be missing or not writable.

Each process has hard limits of its own, which no program can raise again; the memory of all of them together
is watched (`memory`). Files live on memory filesystems whose sizes are fixed from outside.
"""

from __future__ import annotations

import contextlib
import os
import resource

_OPEN_FILES = 8192
# Programs of a sandbox go first when memory is short: before its agent, and before the host's own.
_OOM_SCORE_ADJ = 300


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


class OomScore:
    """Makes what is started in its context go before this process when memory is short.

    Set for a moment on this process itself: set on a child afterwards, its own first children would miss it,
    and the kernel would kill a shell for what its programs hold.
    """

    def __init__(self) -> None:
        """Open the file now: a process that may not be traced does not own its own any more."""
        self._file, self._own = -1, 0
        with contextlib.suppress(OSError, ValueError):
            self._file = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
            self._own = int(os.pread(self._file, 16, 0))

    def __enter__(self) -> None:
        self._set(max(_OOM_SCORE_ADJ, self._own))

    def __exit__(self, *_: object) -> None:
        self._set(self._own)

    def _set(self, value: int) -> None:
        with contextlib.suppress(OSError):
            os.pwrite(self._file, str(value).encode(), 0)


def limit_kernel(pid: int, cpu_s: int) -> None:
    """Limit a kernel as a child, which has not yet started anything; it too goes first."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as file:
        file.write(str(_OOM_SCORE_ADJ))
    limit_child(pid, cpu_s)


def limit_child(pid: int, cpu_s: int) -> None:
    """Limit the CPU time of a child and of each process it will start; 0 does not limit it.

    Not of this process, which serves for as long as the sandbox lives.
    """
    if cpu_s and hasattr(resource, "prlimit"):
        with contextlib.suppress(OSError, ValueError):
            # At the first limit the process is told so (SIGXCPU), at the second it is killed.
            resource.prlimit(pid, resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))


def _lower(which: int, wanted: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(which, (wanted, wanted))
