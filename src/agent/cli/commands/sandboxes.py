"""The commands `sandboxes list` and `sandboxes sweep`."""

from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import exits
from agent.cli.commands.options import (
    HeaderOption,
    ServerOption,
)
from agent.cli.entry import connected

if TYPE_CHECKING:
    from agent.cli.screen import Screen
    from agent.cli.session import Session


sandboxes = typer.Typer(no_args_is_help=True, help="Look at the deployment's sandboxes, and tidy up.")

TrustOption = Annotated[
    bool,
    typer.Option("--trust-server", help="Take the server for DEPLOYMENT's, though it does not say so."),
]


@sandboxes.command("list", epilog=exits.HELP)
def list_sandboxes(
    trust_server: TrustOption = False, server: ServerOption = None, header: HeaderOption = None
) -> None:
    """List the sandboxes of DEPLOYMENT, and what a sweep would do with each."""

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.project import settings_here
        from agent.cli.sandboxes import Sweep, look_after

        return look_after(
            screen, session, settings_here(services=("E2B",)), Sweep(end=False, trust_server=trust_server)
        )

    connected(work, server, header)


@sandboxes.command(epilog=exits.HELP)
def sweep(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be ended.")] = False,
    trust_server: TrustOption = False,
    server: ServerOption = None,
    header: HeaderOption = None,
) -> None:
    """End sandboxes of DEPLOYMENT whose thread is gone, whose run has ended, or that nobody came back to.

    Running ones are spared, and so are those whose thread has a run or waits for a human within
    SANDBOX_HUMAN_LIMIT. The server's key must see all threads. Run it from time to time, by cron for example.
    """

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.project import settings_here
        from agent.cli.sandboxes import Sweep, look_after

        how = Sweep(end=not dry_run, trust_server=trust_server)
        return look_after(screen, session, settings_here(services=("E2B",)), how)

    connected(work, server, header)
