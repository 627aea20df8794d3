"""The two servers of a local run: `e2b-local` and `langgraph dev`, as processes."""

import json
import re
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypedDict, Unpack

from agent.cli.processes import ChildProcess, LocalServerError, find_program
from agent.cli.project import absolute_config

LOOPBACK = "127.0.0.1"
INSTALL_EXTRA = "pip install 'langgraph-e2b-agent[local]'"
READY_S = 60.0  # importing everything takes about 5 s on two cores, more on a cold disk

_VARIABLE = re.compile(r"^\s*(?:export\s+)?(E2B_[A-Z_]+)=[\"']?([^\"'\s]+)", re.MULTILINE)
_POINTERS = frozenset({"E2B_API_KEY", "E2B_API_URL", "E2B_SANDBOX_URL"})

# Neither sends anything of ours, but both reach for the internet at every start.
_UNATTENDED = ("--no-browser", "--no-reload")
NEEDED = (
    "langgraph-cli", "langgraph-api", "langgraph-runtime-inmem", "starlette", "uvicorn", "python-multipart",
    "h11", "pyroute2", "jupyter-client", "ipykernel",
)  # fmt: skip
"""Packages that the two servers do not start without; the extra `local` brings them."""
_OFFLINE = {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "true"}


class E2BLocal(ChildProcess):
    """`e2b-local serve` on a free loopback port.

    Args:
        folder: where its log goes.
        isolated: False runs sandboxes as plain processes; for code that is known.
        warm: how many sandboxes it keeps ready, each with a Python kernel that has started.
        variables: what every sandbox has in its environment.
    """

    def __init__(
        self,
        folder: Path,
        *,
        isolated: bool = True,
        warm: int = 1,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        command = [program("e2b-local"), "serve", "--port", "0", "--pool", str(warm)]
        command += [f"--env={name}={value}" for name, value in (variables or {}).items()]
        if not isolated:
            command.append("--no-isolation")
        super().__init__("e2b-local", command, cwd=folder, log=folder / "e2b-local.log")

    def wait_until_ready(self, deadline_s: float = READY_S) -> Mapping[str, str]:
        """Wait until it serves, and return the variables that point the E2B SDK at it.

        Raises:
            LocalServerError: it ended or did not print them in time.
        """
        return self.wait_ready(self._printed, deadline_s=deadline_s)

    def _printed(self) -> Mapping[str, str] | None:
        found = dict(_VARIABLE.findall(self.output()))
        return found if found.keys() >= _POINTERS else None


class ServerOptions(TypedDict, total=False):
    """How to start `langgraph dev`, all optional."""

    state: Path
    """Its working folder, where it keeps its state in `.langgraph_api`; default the folder of its log."""
    env: Mapping[str, str]
    """Variables on top of this process's own."""
    defaults: Mapping[str, str]
    """Variables that count only where this process has none of that name."""
    port: int
    """Default a free one."""
    arguments: Sequence[str]
    """More arguments, such as `--n-jobs-per-worker=10`; default `--no-browser --no-reload`."""
    attached: bool
    """Show the server's output instead of logging it."""


class LangGraphDev(ChildProcess):
    """`langgraph dev` on a loopback port, its state in a folder of the caller's choice.

    The server keeps its state in its working folder and resolves paths in langgraph.json against it, so it
    runs on a copy of the file with absolute paths. `stop` (SIGTERM) saves the state, and a later
    `start` goes on with it.

    Args:
        config: the langgraph.json to serve; its `env` is left out, so a `.env` cannot override `env`.
        folder: for the log and the copied configuration.
        **options: see `ServerOptions`.
    """

    def __init__(self, config: Path, folder: Path, **options: Unpack[ServerOptions]) -> None:
        self.port = options.get("port") or free_port()
        self._config = config
        self._copy = folder / "langgraph.json"
        attached = options.get("attached", False)
        arguments = options.get("arguments", _UNATTENDED)
        address = ["--host", LOOPBACK, "--port", str(self.port)]
        super().__init__(
            "langgraph dev",
            [program("langgraph"), "dev", "--config", str(self._copy), *address, *arguments],
            cwd=options.get("state", folder),
            log=None if attached else folder / "langgraph-dev.log",
            env={**_OFFLINE, **options.get("env", {})},
            defaults={"LOG_COLOR": str(attached).lower(), **options.get("defaults", {})},
        )

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Write the configuration and start the server.

        Raises:
            LocalServerError: the program cannot be run, or langgraph.json not be read.
        """
        try:
            text = self._config.read_text(encoding="utf-8")
            copied = absolute_config(json.loads(text), self._config.parent)
        except (OSError, ValueError) as exc:
            raise LocalServerError(f"{self._config} cannot be read: {exc}") from exc
        self._copy.write_text(json.dumps(copied, indent=2), encoding="utf-8")
        super().start()

    def wait_until_ready(self, deadline_s: float = READY_S) -> str:
        """Wait until the server answers, and return its address.

        Raises:
            LocalServerError: it ended or did not answer in time.
        """
        return self.wait_ready(lambda: self.url if answers(f"{self.url}/ok") else None, deadline_s=deadline_s)


def refuse_without_extra() -> None:
    """Check that what the two servers need is installed.

    Raises:
        LocalServerError: it is not; says how to install it.
    """
    if missing := [name for name in NEEDED if not _is_installed(name)]:
        raise LocalServerError(
            f"The extra `local` is not installed, which serve and demo need ({', '.join(missing)}): "
            f"{INSTALL_EXTRA}"
        )


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def program(name: str) -> str:
    """Return the path of a console script, first beside this Python, then on the PATH.

    Raises:
        LocalServerError: it is not installed.
    """
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else find_program(name)
    if found is None:
        raise LocalServerError(f"{name} is not installed: {INSTALL_EXTRA}")
    return found


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port


def is_free(port: int) -> bool:
    """Whether a loopback port can be listened on; `langgraph dev` would take another without asking."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def answers(url: str) -> bool:
    """Whether an HTTP GET to a loopback address is answered with success within a second."""
    try:
        with _direct.open(url, timeout=1) as response:
            return bool(response.status < 400)
    except (urllib.error.URLError, OSError, ValueError):
        return False


# Never through a proxy from the environment: these addresses are on this machine.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
