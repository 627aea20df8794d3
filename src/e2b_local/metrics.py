"""Metrics of a sandbox: one sample, taken when asked for, since sampling would cost idle sandboxes CPU."""

from __future__ import annotations

import datetime
from typing import Any

from e2b_local.agent_client import BoxGoneError
from e2b_local.config import Config
from e2b_local.inbox.wire import OpError
from e2b_local.sandbox import Sandbox, State, now
from e2b_local.template import CPU_COUNT

_MB = 1024 * 1024
# E2B's samples are of five seconds each; a range that ends within the current one includes it.
_BUCKET_S = 5


async def samples(
    sandbox: Sandbox, config: Config, start: int | None, end: int | None
) -> list[dict[str, Any]]:
    """Return the sample of this moment if the range (unix seconds) includes it; a paused sandbox has none."""
    moment = now()
    seconds = int(moment.timestamp())
    if sandbox.state is not State.RUNNING:
        return []
    if (start is not None and seconds < start) or (end is not None and seconds > end + _BUCKET_S):
        return []
    try:
        used = await sandbox.box.agent.call("usage")
    except (BoxGoneError, OpError):
        return []
    elapsed_s = max(1.0, (moment - sandbox.started_at).total_seconds())
    return [
        {
            "timestamp": moment.astimezone(datetime.UTC).isoformat(),
            "timestampUnix": seconds,
            "cpuCount": CPU_COUNT,
            "cpuUsedPct": round(100 * float(used["cpu_s"]) / elapsed_s, 2),
            "memUsed": int(used["memory_bytes"]),
            "memTotal": config.limits.memory_mb * _MB,
            "memCache": 0,
            "diskUsed": int(used["disk_bytes"]),
            "diskTotal": int(used["disk_total_bytes"]),
        }
    ]
