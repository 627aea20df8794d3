"""The command line `sandbox-agent`: its commands, put together."""

from pathlib import Path
from typing import Annotated

import typer

from agent.cli import exits, output
from agent.cli.commands import local, runs, sandboxes, threads

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=exits.HELP,
    help="LangGraph agents that write and run code in E2B sandboxes.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"sandbox-agent {version('langgraph-e2b-agent')}")
        raise typer.Exit


def _project(folder: Path | None) -> Path | None:
    if folder is not None:
        from agent.cli.processes import LocalServerError
        from agent.cli.project import choose

        try:
            choose(folder)
        except LocalServerError as exc:
            raise typer.BadParameter(str(exc)) from exc
    return folder


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    project: Annotated[
        Path | None,
        typer.Option(
            callback=_project,
            metavar="FOLDER",
            help="Folder of another langgraph.json than this checkout's: its .env is read, its code served.",
        ),
    ] = None,
) -> None:
    pass


for command in (
    local.demo,
    runs.repair,
    runs.chat,
    runs.resume,
    threads.threads,
    threads.show,
    threads.cancel,
    local.doctor,
    local.serve,
):
    app.command(epilog=exits.HELP)(command)
app.add_typer(sandboxes.sandboxes, name="sandboxes")


def main() -> None:
    """Run the command line."""
    with output.watched():
        app()
