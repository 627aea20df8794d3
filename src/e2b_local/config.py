"""What a server is told at its start."""

from __future__ import annotations

import dataclasses
import pathlib

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclasses.dataclass(frozen=True)
class Config:
    """The options of one server; see `e2b-local serve --help` for their meaning."""

    host: str
    port: int
    api_key: str
    isolation: bool
    pool_size: int
    state_dir: pathlib.Path
    disk_mb: int = 1024
    memory_mb: int = 2048
    max_running: int | None = None
    # E2B's cap on a sandbox's life on its larger plan.
    max_timeout_s: int = 24 * 3600
