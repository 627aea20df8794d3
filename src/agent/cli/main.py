"""The commands of `sandbox-agent`; what they do lives in the other modules."""

import signal
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from agent.cli import exits

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=exits.HELP,
    help="LangGraph agents that write and run code in E2B sandboxes.",
)


class Terminated(KeyboardInterrupt):
    """The process was asked to end; takes the way of Ctrl-C, so that everything is cleaned up."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"signal {signum}")
        self.signum = signum


def _terminate(signum: int, frame: object) -> NoReturn:
    raise Terminated(signum)


def guarded(work: Callable[[], int]) -> NoReturn:
    """Run a command's work and leave with its exit code, also on Ctrl-C, SIGTERM and wrong settings."""
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _terminate)
    from agent.errors import SettingsError

    try:
        code = work()
    except Terminated as exc:
        code = 128 + exc.signum
    except KeyboardInterrupt:
        code = exits.INTERRUPTED
    except SettingsError as exc:
        typer.echo(str(exc), err=True)
        code = exits.USAGE
    raise typer.Exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"sandbox-agent {version('langgraph-e2b-agent')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


@app.command(epilog=exits.HELP)
def demo(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Approve the plan without asking.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the servers' logs and state.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show tool output and the model's words.")
    ] = False,
) -> None:
    """Repair a small broken project end to end, on servers that are started and stopped for it.

    Needs no key and no network: sandboxes run in e2b-local and the model plays a script, unless
    E2B_API_KEY, or MODEL with its key, are set.
    """

    def work() -> int:
        from agent.cli.demo import run_demo
        from agent.cli.screen import Screen
        from agent.settings import Settings

        return run_demo(Screen(), Settings.from_env(), yes=yes, keep=keep, verbose=verbose)

    guarded(work)


@app.command(epilog=exits.HELP)
def serve(
    port: Annotated[int, typer.Option(help="Port of the LangGraph server.", min=1, max=65535)] = 2024,
    jobs: Annotated[int, typer.Option(help="How many runs may work at the same time.", min=1)] = 10,
    browser: Annotated[bool, typer.Option("--browser", help="Open Studio in a browser.")] = False,
    reload: Annotated[bool, typer.Option("--reload", help="Restart when the code changes.")] = False,
    no_isolation: Annotated[
        bool, typer.Option("--no-isolation", help="Run local sandboxes as plain processes: no protection.")
    ] = False,
) -> None:
    """Serve the graphs for development, with a local sandbox server unless an E2B key is set.

    Reads .env beside langgraph.json; variables that are set already win. State is kept in .langgraph_api.
    """

    def work() -> int:
        from agent.cli.screen import Screen
        from agent.cli.serve import run_serve

        wanted = {name for name, on in {"browser": browser, "reload": reload}.items() if on}
        return run_serve(Screen(), port=port, jobs=jobs, wanted=wanted, isolated=not no_isolation)

    guarded(work)


def main() -> None:
    """Run the command line."""
    app()
