"""Serve the graphs for development, in the foreground, until Ctrl-C."""

import fcntl
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent.cli import exits
from agent.cli.local_run import LocalRun, can_isolate
from agent.cli.processes import LocalServerError
from agent.cli.project import dotenv, find_config
from agent.cli.screen import Screen
from agent.cli.servers import is_free, refuse_without_extra

if TYPE_CHECKING:
    from agent.settings import Settings


def run_serve(screen: Screen, *, port: int, jobs: int, wanted: Collection[str], isolated: bool) -> int:
    """Start the servers, show where they are and wait.

    Args:
        screen: where to write; the LangGraph server writes there, too.
        port: of the LangGraph server.
        jobs: how many runs may work at the same time; `langgraph dev` by itself does one.
        wanted: of `browser` (open Studio) and `reload` (restart when code changes).
        isolated: False runs local sandboxes as plain processes.

    Returns:
        The exit code, when a server does not come up or ends by itself.
    """
    from agent.settings import Settings

    try:
        refuse_without_extra()
        config = find_config()
        variables = dotenv(config)
        Settings.refuse_mixed_sources(variables)
        settings = Settings.from_env(defaults=variables)
        refuse_unknown_tools(settings)
        own = settings.e2b_api_key is None
        _refuse(port, needs_isolation=own and isolated)
        arguments = [f"--n-jobs-per-worker={jobs}"]
        arguments += [f"--no-{name}" for name in ("browser", "reload") if name not in wanted]
        with (
            _alone_in(config.parent),
            LocalRun(
                own_sandboxes=own,
                isolated=isolated,
                config=config,
                state=config.parent,
                defaults={"LOG_LEVEL": "WARNING", **variables},
                port=port,
                arguments=arguments,
                attached=True,
            ) as local,
        ):
            local.start_sandboxes()
            _introduce(screen, local, settings)
            local.start_server()
            screen.line(f"Ready: {local.url}. Ctrl-C stops it.", "bold")
            while True:
                local.check()
                time.sleep(0.2)
    except LocalServerError as exc:
        screen.error(str(exc))
    return exits.PLATFORM


def refuse_unknown_tools(settings: "Settings") -> None:
    """Build the agent where a setting names tools of it, since the server would refuse it with a long log.

    Raises:
        SettingsError: `ASK_FIRST` names no tool of the agent.
    """
    if settings.ask_first:
        from agent.graphs.code_agent import code_agent

        code_agent(settings)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep a second server from the same state: each would overwrite what the other has written.

    Raises:
        LocalServerError: another one serves this folder.
    """
    state = folder / ".langgraph_api"
    state.mkdir(exist_ok=True)
    with (state / "serve.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LocalServerError(
                f"Another `sandbox-agent serve` works on {state}, and two would overwrite each other's "
                "threads. Stop it, or serve from another checkout."
            ) from None
        yield


def _refuse(port: int, *, needs_isolation: bool) -> None:
    if not is_free(port):
        raise LocalServerError(f"Port {port} is taken. Stop it, or give --port (PORT= with make).")
    if needs_isolation and not can_isolate():
        raise LocalServerError(
            "bubblewrap is missing or may not make namespaces, and what a model writes should not run "
            "without it. Install bubblewrap, set E2B_API_KEY, or give --no-isolation."
        )


def _introduce(screen: Screen, local: LocalRun, settings: "Settings") -> None:
    if local.owns_sandboxes:
        screen.line(f"Sandboxes: e2b-local at {local.service['E2B_API_URL']}")
        if not local.isolated:
            screen.line("  NOT ISOLATED: what runs there can do all that you can.", "bold red")
        screen.line("  For `sandbox-agent sandboxes` in another shell:", "dim")
        for name, value in local.service.items():
            screen.line(f"    export {name}={value}", "dim")
    else:
        screen.line(f"Sandboxes: {settings.e2b_api_url or 'E2B'}")
    screen.line(f"Model: {settings.model}")
    if settings.model.startswith("openai:") and settings.openai_api_key is None:
        screen.line(
            "  OPENAI_API_KEY is not set: runs will fail. Set it in .env, or set MODEL=scripted:repair+chat.",
            "yellow",
        )
