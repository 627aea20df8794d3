"""Commands for this machine: `demo`, `serve` and `doctor`."""

from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.commands.options import (
    HeaderOption,
    ServerOption,
    VerboseOption,
    YesOption,
)
from agent.cli.entry import connected, guarded, screen_for

if TYPE_CHECKING:
    from agent.cli.screen import Screen
    from agent.cli.session import Session


def demo(
    yes: YesOption = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the servers' logs and state.")] = False,
    verbose: VerboseOption = False,
) -> None:
    """Repair a small broken project end to end, on servers that are started and stopped for it.

    Needs no key and no network: sandboxes run in e2b-local and the model plays a script, unless E2B_API_KEY,
    or MODEL with its key, are set for it. Reads no .env, so that keys kept there are never spent by accident.
    """

    def work() -> int:
        from agent.cli.demo import run_demo
        from agent.settings import Settings

        return run_demo(screen_for(), Settings.from_env(), yes=yes, keep=keep, verbose=verbose)

    guarded(work)


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

    Serves the checkout it is installed from, or --project's folder: never what lies in the current one. Reads
    .env beside langgraph.json; variables that are set already win. State is kept in .langgraph_api.
    """

    def work() -> int:
        from agent.cli.serve import run_serve

        wanted = {name for name, on in {"browser": browser, "reload": reload}.items() if on}
        return run_serve(screen_for(), port=port, jobs=jobs, wanted=wanted, isolated=not no_isolation)

    guarded(work)


def doctor(server: ServerOption = None, header: HeaderOption = None) -> None:
    """Check Python, packages, keys, isolation and the server, and say what to do."""

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.doctor import run_doctor
        from agent.cli.project import settings_here

        return run_doctor(screen, settings_here(services=("E2B",)), session)

    connected(work, server, header)
