"""`e2b-local list` and `e2b-local kill`: asking a running server."""

from __future__ import annotations

import datetime
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

_TIMEOUT_S = 30


class AskError(Exception):
    """The server could not be asked, or refused."""


def list_sandboxes() -> int:
    """Print a line for each sandbox; return the exit code."""
    for each in _sandboxes():
        end = datetime.datetime.fromisoformat(each["endAt"])
        left = end - datetime.datetime.now(datetime.UTC)
        # A paused sandbox has no end.
        until = f"{max(0, round(left.total_seconds()))} s left" if each["state"] == "running" else "-"
        metadata = " ".join(f"{key}={value}" for key, value in sorted(each["metadata"].items()))
        print(each["sandboxID"], each["state"], each["templateID"], until, metadata, sep="\t")  # noqa: T201
    return 0


def kill_sandboxes(wanted: Sequence[str], *, everything: bool) -> int:
    """Kill the sandboxes named, or all; return 1 if one was not found."""
    missing = 0
    for sandbox_id in [each["sandboxID"] for each in _sandboxes()] if everything else wanted:
        try:
            _ask("DELETE", f"/sandboxes/{sandbox_id}")
            print(f"killed {sandbox_id}")  # noqa: T201
        except urllib.error.HTTPError as exc:
            if exc.code != 404:
                raise AskError(f"the server refused: {exc}") from exc
            missing = 1
            print(f"no sandbox {sandbox_id}", file=sys.stderr)  # noqa: T201
    return missing


def _sandboxes() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        try:
            body, token = _ask("GET", f"/v2/sandboxes?nextToken={token}")
        except urllib.error.HTTPError as exc:
            raise AskError(f"the server refused: {exc}") from exc
        found += json.loads(body)
        if not token:
            return found


def _ask(method: str, path: str) -> tuple[bytes, str]:
    url, key = os.environ.get("E2B_API_URL"), os.environ.get("E2B_API_KEY")
    if not url or not key:
        raise AskError("set E2B_API_URL and E2B_API_KEY to what `e2b-local serve` printed")
    request = urllib.request.Request(url.rstrip("/") + path, method=method, headers={"X-API-KEY": key})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as reply:
            return reply.read(), reply.headers.get("x-next-token", "")
    except urllib.error.HTTPError:
        raise
    except OSError as exc:
        raise AskError(f"no server answers at {url}: {exc}") from exc
