"""The folder of one server's run, and the folders that killed servers left behind."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import pathlib
import shutil
import signal
import tempfile

from e2b_local.cgroups import clear_noted

_log = logging.getLogger(__name__)
_PREFIX = "e2b-local-"
_LOCK = "lock"
_PIDS = "pids"


class StateDir:
    """A private folder that ends with the server; a lock in it says that the server lives.

    The path is short, because Unix sockets in it may have at most 107 characters.
    """

    def __init__(self) -> None:
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Named only once it is held, lest a server that starts just now takes this folder for an abandoned
        # one; and held until this process ends, however it ends.
        unnamed = self.path / f"{_LOCK}.new"
        self._lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unnamed.rename(self.path / _LOCK)

    def remove(self) -> None:
        """Remove the folder, all it holds, and the control groups noted in it."""
        clear_noted(self.path)
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def note_process(folder: pathlib.Path, pid: int) -> None:
    """Write down a process that must not outlive the server of this folder."""
    with (folder / _PIDS).open("a") as file:
        file.write(f"{pid} {_start_time(pid)}\n")


def clear_left_behind() -> None:
    """Remove the folders of this user's servers that are gone, ending what they still run."""
    for folder in pathlib.Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid() or not (folder / _LOCK).exists():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _end_processes(folder)
                if not clear_noted(folder):
                    continue  # a process of it is still being ended: the next start finds the folder again
                shutil.rmtree(folder, ignore_errors=True)
                _log.info("cleared what a killed server left in %s", folder)
            finally:
                os.close(lock)


def _end_processes(folder: pathlib.Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in (folder / _PIDS).read_text().splitlines():
            pid, started = line.split()
            # A number may have been given to another process since; the start time tells.
            if _start_time(int(pid)) == started:
                with contextlib.suppress(OSError):
                    os.killpg(int(pid), signal.SIGKILL)


def _start_time(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return ""
