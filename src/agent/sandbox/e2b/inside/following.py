"""Follows a process of a kernel's to its end, and not what it left running in the background."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import Any

READ_BYTES = 65536
GRACE_S = 0.1
"""Of silence after a process's end before something in its background is thought to hold its pipes."""
PATIENCE_S = 1.0
"""The same where the background never falls silent."""

Pipes = dict[int, Callable[[bytes], object]]
"""By the descriptor of a pipe, what is called with each piece of what comes, at its end with none."""


def followed(process: Any, takers: Pipes) -> None:
    """Pass on what a process prints until it has ended; pipes that are at their end leave the dictionary.

    Args:
        process: as `subprocess.Popen` has it.
        takers: by the descriptors of its pipes, what is called with the bytes.
    """
    try:
        ended = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        ended = -1
    latest = 0.0
    try:
        while takers or process.returncode is None:
            running = process.returncode is None
            waits = [*takers, ended] if running and ended >= 0 else [*takers]
            patience = (None if ended >= 0 else 0.05) if running else GRACE_S
            ready = select.select(waits, [], [], patience)[0]
            if running and process.poll() is not None:
                latest = time.monotonic() + PATIENCE_S
            elif not running and (not ready or time.monotonic() > latest):
                return
            taken(ready, takers)
    finally:
        if ended >= 0:
            os.close(ended)


def taken(ready: list[int], takers: Pipes) -> None:
    """Read once from each pipe that has something."""
    for reader in ready:
        if reader in takers:
            data = os.read(reader, READ_BYTES)
            takers[reader](data)
            if not data:
                del takers[reader]


def drained(takers: Pipes) -> None:
    """Read what is still printed until nothing holds a pipe any more; nobody may be left to write to."""
    while takers:
        taken(select.select([*takers], [], [])[0], takers)
