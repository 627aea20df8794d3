"""Everything a run on this machine needs, started together and always stopped."""

import json
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from agent.cli.processes import LocalServerError, find_program
from agent.cli.project import find_config
from agent.cli.servers import E2BLocal, LangGraphDev, ServerOptions


class LocalRun:
    """`langgraph dev` with this project's graphs, and `e2b-local` unless a sandbox service is given.

    A context manager: leaving it stops both, whatever happened inside.

    Args:
        own_sandboxes: start `e2b-local`; False uses the service that the environment names.
        isolated: put its sandboxes under bubblewrap; default where that works.
        warm: how many sandboxes it keeps ready.
        variables: what they have in their environment.
        config: the langgraph.json to serve; default this project's.
        **server: how to start the LangGraph server, see `LangGraphDev`.
    """

    def __init__(
        self,
        *,
        own_sandboxes: bool = True,
        isolated: bool | None = None,
        warm: int = 1,
        variables: Mapping[str, str] | None = None,
        config: Path | None = None,
        **server: Unpack[ServerOptions],
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sandbox-agent-"))
        self.isolated = can_isolate() if isolated is None else isolated
        self.service: Mapping[str, str] = {}
        self.keep = False
        self._config = config
        self._options = server
        self._sandboxes: E2BLocal | None = None
        if own_sandboxes:
            isolated = self.isolated
            self._sandboxes = E2BLocal(self.folder, isolated=isolated, warm=warm, variables=variables)
        self._server: LangGraphDev | None = None

    @property
    def url(self) -> str:
        """The LangGraph server's address."""
        return self._server.url if self._server else ""

    @property
    def owns_sandboxes(self) -> bool:
        """Whether sandboxes run on this machine, in a server of this run."""
        return self._sandboxes is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._stop()
        finally:
            if not self.keep:
                shutil.rmtree(self.folder, ignore_errors=True)

    def start_sandboxes(self) -> None:
        """Start `e2b-local`, if this run brings its own, and wait until it serves.

        Raises:
            LocalServerError: it did not come up; the message ends with its log.
        """
        if self._sandboxes is not None:
            self._sandboxes.start()
            self.service = self._sandboxes.wait_until_ready()

    def start_server(self, config: Path | None = None) -> None:
        """Start `langgraph dev`, pointed at the sandboxes, and wait until it serves.

        Args:
            config: the langgraph.json to serve; default that of this run.

        Raises:
            LocalServerError: it did not come up; the message ends with its log.
        """
        config = config or self._config or find_config()
        options = self._options.copy()
        options["env"] = {**options.get("env", {}), **self.service}
        self._server = LangGraphDev(config, self.folder, **options)
        self._server.start()
        self._server.wait_until_ready()

    def check(self) -> None:
        """Look whether the servers that were started still run.

        Raises:
            LocalServerError: one has ended by itself; says which, and what it said last.
        """
        for child in (self._sandboxes, self._server):
            if child is not None and child.pid is not None and not child.is_running():
                ended = f"{child.name} has ended by itself ({child.ending()})."
                raise LocalServerError(f"{ended}\n{child.tail()}".rstrip())

    def _stop(self) -> None:
        # The LangGraph server first: what it cancels may still want to end its sandboxes.
        try:
            if self._server is not None:
                self._server.stop()
        finally:
            if self._sandboxes is not None:
                self._sandboxes.stop()

    def server_log(self) -> str:
        """Return the end of the LangGraph server's log, for an error message."""
        return self._server.tail() if self._server else ""

    def sandboxes_alive(self) -> list[str] | None:
        """Ask this run's own sandbox server which sandboxes live, running or paused.

        Returns:
            Their ids; None when sandboxes are another service's, which this does not ask.

        Raises:
            LocalServerError: the sandbox server does not answer.
        """
        if self._sandboxes is None or not self.service:
            return None
        request = urllib.request.Request(
            f"{self.service['E2B_API_URL'].rstrip('/')}/v2/sandboxes?state=running,paused",
            headers={"X-API-KEY": self.service["E2B_API_KEY"]},
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(request, timeout=10) as response:
                return [str(found["sandboxID"]) for found in json.load(response)]
        except (urllib.error.URLError, OSError, ValueError, KeyError) as exc:
            raise LocalServerError(f"e2b-local does not answer: {exc}\n{self._sandboxes.tail()}") from exc


def can_isolate() -> bool:
    """Whether bubblewrap is installed and may make the namespaces that e2b-local puts sandboxes in."""
    bwrap = find_program("bwrap")
    if bwrap is None:
        return False
    trial = [bwrap, "--ro-bind", "/", "/", "--unshare-user", "--unshare-pid", "--unshare-net", "true"]
    try:
        return subprocess.run(trial, capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
