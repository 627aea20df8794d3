"""Start and stop an `e2b-local` server as its own process."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Awaitable, Callable
from typing import IO, Any

from e2b_code_interpreter import AsyncSandbox

MakeSandbox = Callable[..., Awaitable[AsyncSandbox]]
"""Creates a sandbox that is killed after the test; takes what `AsyncSandbox.create` takes."""

WITHOUT_PLUGINS = ("--env", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1")
"""Where projects are repaired, pytest starts often; the plugins of this Python take longer than itself."""

_VARIABLES = ("E2B_API_URL", "E2B_SANDBOX_URL", "E2B_API_KEY")


@dataclasses.dataclass
class E2BLocal:
    """A running server; `env` holds the three variables that point the SDK at it."""

    process: subprocess.Popen[str]
    env: dict[str, str]
    _log: IO[str]

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self.process.pid

    @property
    def api_url(self) -> str:
        """The address of the server, which serves sandbox traffic too."""
        return self.env["E2B_API_URL"]

    @property
    def api_key(self) -> str:
        """The key of this start."""
        return self.env["E2B_API_KEY"]

    @property
    def options(self) -> dict[str, str]:
        """The keyword arguments that point one SDK call at this server, leaving the environment alone."""
        return {"api_url": self.api_url, "sandbox_url": self.env["E2B_SANDBOX_URL"], "api_key": self.api_key}

    def inject(self, kind: str, match: str = "", **more: Any) -> None:
        """Put a fault in force for the next request that matches; fields as in `e2b_local.faults.Fault`."""
        self._admin("POST", "faults", {"kind": kind, "match": match, **more})

    def faults(self) -> list[dict[str, Any]]:
        """Return the faults injected since the last clearing, with their hits."""
        found: list[dict[str, Any]] = json.loads(self._admin("GET", "faults"))
        return found

    def clear_faults(self) -> None:
        """Take all faults back."""
        self._admin("DELETE", "faults")

    def warm(self) -> int:
        """Return how many sandboxes the pool has ready."""
        return int(json.loads(self._admin("GET", "pool"))["ready"])

    def alive(self) -> list[dict[str, Any]]:
        """Return `{sandboxID, state, metadata, endAt}` of every sandbox, the newest first."""
        found: list[dict[str, Any]] = json.loads(self._admin("GET", "sandboxes"))
        return found

    def die(self, sandbox_id: str = "any") -> str:
        """End all processes of a sandbox at once, as if by themselves; return its id.

        By default of a running one at random; HTTPError 404 when there is none.
        """
        return str(json.loads(self._admin("POST", f"sandboxes/{sandbox_id}/die"))["sandboxID"])

    def log(self) -> str:
        """Return what the server wrote to its standard error so far."""
        return pathlib.Path(self._log.name).read_text()

    def stop(self, timeout_s: float = 15.0) -> int:
        """End the server with SIGTERM and return its exit code; calling it again is harmless."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout_s)
        self._close()
        return code

    def kill(self) -> None:
        """End the server with SIGKILL, which it cannot react to."""
        self.process.kill()
        self.process.wait(15.0)
        self._close()

    def _admin(self, method: str, path: str, body: object = None) -> bytes:
        request = urllib.request.Request(
            f"{self.api_url}/_local/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"X-API-KEY": self.api_key, "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as reply:
            content: bytes = reply.read()
        return content

    def _close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()
        if not self._log.closed:
            self._log.close()


def isolation_missing() -> str | None:
    """Return why sandboxes cannot be isolated here, or None."""
    return None if shutil.which("bwrap") else "bubblewrap is not installed (apt-get install bubblewrap)"


def isolation_arguments() -> list[str]:
    """Return the options that let a server start here: isolated wherever it can be.

    Raises:
        RuntimeError: isolation is missing and REQUIRE_BWRAP=1 says that it must not be.
    """
    missing = isolation_missing()
    if missing and os.environ.get("REQUIRE_BWRAP") == "1":
        raise RuntimeError(missing)
    return ["--no-isolation"] if missing else []


def start_e2b_local(*arguments: str, env: dict[str, str] | None = None) -> E2BLocal:
    """Start `e2b-local serve` on a free port and wait until it is ready.

    Args:
        *arguments: further options, e.g. "--no-isolation".
        env: variables to add to this process's own for the server.

    Raises:
        RuntimeError: it ended before it was ready; the message holds what it wrote.
    """
    log = tempfile.NamedTemporaryFile("w", prefix="e2b-local-log-", suffix=".txt")  # noqa: SIM115 - see _close
    process = subprocess.Popen(
        [sys.executable, "-m", "e2b_local.main", "serve", "--port", "0", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**os.environ, **(env or {})},
        start_new_session=True,  # Ctrl-C in a terminal is for the tests, which stop the server themselves
    )
    server = E2BLocal(process, {}, log)
    assert process.stdout is not None
    for name in _VARIABLES:
        key, _, value = process.stdout.readline().strip().partition("=")
        if key != name:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
            said = server.log()
            server._close()
            raise RuntimeError(f"e2b-local did not start: {said.strip()}")
        server.env[key] = value
    return server
