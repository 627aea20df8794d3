"""A program on a pseudo-terminal: type to it, wait for what it shows."""

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")

# Makes the pseudo-terminal the controlling one, so that Ctrl-C typed there becomes a signal.
_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """Runs a command on a terminal of its own.

    Args:
        command: program and arguments.
        env: the whole environment.
        cwd: working folder.
        columns: width of the terminal.
    """

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, columns: int = 110
    ) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, *command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={"TERM": "xterm-256color", **env},
            cwd=cwd,
            start_new_session=True,
        )
        os.close(theirs)
        self._shown = ""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    @property
    def raw(self) -> str:
        """Everything shown so far, as it was written."""
        return self._shown

    @property
    def text(self) -> str:
        """Everything shown so far, without colours and cursor movements."""
        return _ESCAPES.sub("", self._shown)

    def expect(self, text: str, *, timeout_s: float = 60.0) -> None:
        """Wait until `text` is shown, after what was expected before."""
        give_up = time.monotonic() + timeout_s
        while (found := self.text.find(text, self._seen)) < 0:
            assert time.monotonic() < give_up, f"{text!r} was not shown:\n{self.text}"
            assert self._read(), f"{text!r} was not shown before the end:\n{self.text}"
        self._seen = found + len(text)

    def type(self, text: str) -> None:
        """Type, as at a keyboard; `\\x03` is Ctrl-C."""
        os.write(self._ours, text.encode())

    def wait(self, *, timeout_s: float = 60.0) -> int:
        """Wait for the end of the program and return its exit code."""
        give_up = time.monotonic() + timeout_s
        while self._read():
            assert time.monotonic() < give_up, f"still running:\n{self.text}"
        return self.process.wait(timeout=5)

    def _read(self) -> bool:
        """Read what is there; False at the end."""
        ready, _, _ = select.select([self._ours], [], [], 0.2)
        if not ready:
            return True
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # EIO: the program has closed the terminal
            return False
        self._shown += data.decode(errors="replace")
        return bool(data)
