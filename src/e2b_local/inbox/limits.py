"""What a sandbox may use at most, held without control groups, which may be missing or not writable.

Each process has hard limits of its own, which no program can raise again; the memory of all of them together
is watched (`memory`). Files live on memory filesystems whose sizes are fixed from outside.
"""

from __future__ import annotations

import contextlib
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


def limit_child(pid: int, cpu_s: int) -> None:
    """Limit the CPU time of a child and of each process it will start; 0 does not limit it.

    Not of this process, which serves for as long as the sandbox lives.
    """
    with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as file:
        file.write(str(_OOM_SCORE_ADJ))
    if cpu_s and hasattr(resource, "prlimit"):
        with contextlib.suppress(OSError, ValueError):
            # At the first limit the process is told so (SIGXCPU), at the second it is killed.
            resource.prlimit(pid, resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))


def _lower(which: int, wanted: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(which, (wanted, wanted))
