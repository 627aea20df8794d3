"""What a server is told at its start."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one sandbox may use at most; without isolation none of it is enforced."""

    memory_mb: int = 2048
    disk_mb: int = 1024
    """Of /home and of /tmp each; both are memory filesystems."""
    shared_mb: int = 256
    processes: int = 512
    """Processes and threads together."""
    cpu_s: int = 3600
    """CPU time of each process; 0 for no limit."""


@dataclasses.dataclass(frozen=True)
class Config:
    """The options of one server; see `e2b-local serve --help` for their meaning."""

    host: str
    port: int
    api_key: str
    isolation: bool
    pool_size: int
    state_dir: pathlib.Path
    limits: Limits = Limits()
    max_running: int | None = None
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What the template adds to the environment of every program of a sandbox."""
    domain: str = "localhost"
    """Below which the names of sandboxes lead to this server; those below localhost always do."""
    # E2B's cap on a sandbox's life on its larger plan.
    max_timeout_s: int = 24 * 3600
