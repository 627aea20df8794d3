"""Child processes that never outlive their parent's interest in them."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TypeVar

from agent.cli.visible import visible_log

T = TypeVar("T")

_POLL_S = 0.05
# Output at once, as on the terminal that a server of ours would have had, in the encoding it is read in here.
_AT_ONCE = {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}
_RELAY_S = 2.0
_LONGEST_PIECE = 65_536  # of a line, in bytes; a longer one is shown in pieces
_LONGEST_LINE = 300  # of a log, shown in an error
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TETHER = Path(__file__).with_name("tether.py")


class LocalServerError(Exception):
    """A server did not come up, or has ended; the message ends with the last lines of its log."""


def find_program(name: str) -> str | None:
    """Return the path of a program on the PATH; what the current folder brings does not count."""
    return shutil.which(name, path=absolute_path())


def absolute_path() -> str:
    """Return this process's PATH without its relative entries, such as `.` and empty ones."""
    return os.pathsep.join(filter(os.path.isabs, os.get_exec_path())) or os.defpath


def inherited(*, without: str | None = None) -> dict[str, str]:
    """Return this process's variables for a child, but for those whose names begin as `without` says."""
    # Passed on, not read: settings are read by agent.settings alone.
    return {name: value for name, value in os.environ.items() if not (without and name.startswith(without))}


class ChildProcess:
    """One command in a process group of its own, its output in a file.

    A group of its own keeps the terminal's Ctrl-C from reaching it: this process decides when it ends, and
    in which order. Should this process be killed, the kernel asks the command to end (on Linux): so start it
    in a thread that lives as long as the process, such as the main one.

    Args:
        name: what messages call it.
        command: program and arguments.
        cwd: its working folder.
        log: file its output is appended to; readable by its owner only, since a server may print keys.
            None shows the output where this process writes its own, made visible: it repeats what models and
            sandboxes say.
        env: variables on top of this process's own.
        defaults: variables that count only where this process has none of that name.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        cwd: Path,
        log: Path | None,
        env: Mapping[str, str] | None = None,
        defaults: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.command = list(command)
        self.cwd = cwd
        self.log = log
        self.env = dict(env or {})
        self.defaults = dict(defaults or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._relay: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """Id of the process and of its group; None before `start` and after `stop`."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the command.

        Raises:
            LocalServerError: the program cannot be run.
        """
        if find_program(self.command[0]) is None:  # the tether could say so only in the log
            raise LocalServerError(f"{self.name} cannot be started: there is no program {self.command[0]}")
        output = (
            None if self.log is None else os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        )
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), *self.command],
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if output is None else output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**self.defaults, **inherited(), **_AT_ONCE, **self.env},
            )
        except OSError as exc:
            raise LocalServerError(f"{self.name} cannot be started: {exc}") from exc
        finally:
            if output is not None:
                os.close(output)
        if (printed := self._process.stdout) is not None:
            self._relay = threading.Thread(target=_relay, args=[printed], daemon=True)
            self._relay.start()

    def wait_ready(self, ready: Callable[[], T | None], *, deadline_s: float) -> T:
        """Wait until `ready` returns something, and return that.

        Args:
            ready: asks the process for a sign of life; must not block for long.
            deadline_s: how long to wait, in seconds.

        Raises:
            LocalServerError: the process ended, or the deadline passed; the process is not stopped here.
        """
        give_up = time.monotonic() + deadline_s
        while True:
            found = ready()
            if found is not None:
                return found
            if not self.is_running():
                raise LocalServerError(
                    f"{self.name} ended before it was ready ({self.ending()}).\n{self.tail()}".rstrip()
                )
            if time.monotonic() > give_up:
                raise LocalServerError(
                    f"{self.name} was not ready within {deadline_s:g} s.\n{self.tail()}".rstrip()
                )
            time.sleep(_POLL_S)

    def is_running(self) -> bool:
        """Whether the command has been started and has not ended; leaves its exit status in place."""
        if self._process is None:
            return False
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self._process.poll() is None
        # WNOWAIT keeps an ended process as a zombie, so that its group id cannot be taken by another.
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def stop(self, *, grace_s: float = 10.0) -> None:
        """End the command: ask with SIGTERM, wait, then kill what is left of its group.

        An exception that arrives while waiting (a second Ctrl-C) ends the wait, not the killing.

        Args:
            grace_s: how long it may take to end by itself, in seconds.
        """
        process = self._process
        if process is None:
            return
        try:
            if self.is_running():
                process.terminate()
            give_up = time.monotonic() + grace_s
            while self.is_running() and time.monotonic() < give_up:
                time.sleep(_POLL_S)
        finally:
            self._kill_group(process.pid)
            process.wait()
            self._process = None
            if self._relay is not None:
                self._relay.join(_RELAY_S)  # what is left; a process that left the group may hold it open

    @staticmethod
    def _kill_group(group: int) -> None:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
            return

    def output(self) -> str:
        """Return everything the command has printed to its log."""
        if self.log is None:
            return ""
        try:
            return self.log.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def tail(self, lines: int = 12) -> str:
        """Return the last lines the command has printed, without colours and long ones cut.

        Empty without a log, and where nothing was printed.
        """
        shown = _ESCAPES.sub("", self.output()).rstrip().splitlines()[-lines:]
        if not shown:
            return ""
        cut = (line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in shown)
        return "\n".join(["Last lines of its log:", *(f"  {line}" for line in cut)])

    def ending(self) -> str:
        """Return how the command ended: `exit code 1` or `SIGKILL`; empty while it runs."""
        if self._process is None or self.is_running():
            return ""
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            code = self._process.returncode
        else:
            ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            assert ended is not None
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _relay(printed: IO[bytes]) -> None:
    """Write what a command prints to the standard output, as it comes and made visible."""
    with printed:
        while piece := printed.readline(_LONGEST_PIECE):
            # Read on where nobody takes it any longer: the command would wait for that.
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.write(visible_log(piece.decode("utf-8", "replace")))
                sys.stdout.flush()
