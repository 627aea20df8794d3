"""Sandboxes in the JSON forms of the control plane."""

from __future__ import annotations

from typing import Any

from e2b_local.config import Config
from e2b_local.sandbox import Sandbox
from e2b_local.snapshots import Snapshot
from e2b_local.template import CPU_COUNT

# Features of the SDK depend on this version; from 0.6.4 on all of them are enabled.
ENVD_VERSION = "0.6.7"
_CLIENT_ID = "e2b-local"


def connected(sandbox: Sandbox, domain: str) -> dict[str, Any]:
    """Return what create and connect reply with."""
    return {
        "templateID": sandbox.request.template,
        "alias": sandbox.request.template,
        "sandboxID": sandbox.id,
        "clientID": _CLIENT_ID,
        "envdVersion": ENVD_VERSION,
        "envdAccessToken": sandbox.token,
        "domain": domain,
    } | ({"trafficAccessToken": sandbox.traffic_token} if sandbox.traffic_token else {})


def listed(sandbox: Sandbox, config: Config) -> dict[str, Any]:
    """Return one item of a list."""
    return {
        "templateID": sandbox.request.template,
        "alias": sandbox.request.template,
        "sandboxID": sandbox.id,
        "clientID": _CLIENT_ID,
        "startedAt": sandbox.started_at.isoformat(),
        "endAt": sandbox.end_at.isoformat(),
        "envdVersion": ENVD_VERSION,
        "cpuCount": CPU_COUNT,
        "memoryMB": config.limits.memory_mb,
        "diskSizeMB": config.limits.disk_mb,
        "state": sandbox.state.value,
        "metadata": sandbox.request.metadata,
    }


def detail(sandbox: Sandbox, config: Config, domain: str) -> dict[str, Any]:
    """Return what get_info replies with."""
    lifecycle = sandbox.request.lifecycle
    return {
        **listed(sandbox, config),
        "domain": domain,
        "envdAccessToken": sandbox.token,
        "lifecycle": {
            "autoResume": lifecycle.auto_resume,
            "onTimeout": "pause" if lifecycle.pause_on_timeout else "kill",
        },
        "network": dict(sandbox.request.network),
    } | ({} if sandbox.request.internet is None else {"allowInternetAccess": sandbox.request.internet})


def snapshotted(snapshot: Snapshot) -> dict[str, Any]:
    """Return one snapshot."""
    return {"snapshotID": snapshot.id, "names": list(snapshot.names)}
