"""Commands that look after threads: `threads`, `show` and `cancel`."""

from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.commands.options import (
    HeaderOption,
    ServerOption,
    ThreadArgument,
)
from agent.cli.entry import connected

if TYPE_CHECKING:
    from agent.cli.screen import Screen
    from agent.cli.session import Session


def threads(
    limit: Annotated[int, typer.Option(help="How many to show, the newest first.", min=1, max=1000)] = 20,
    waiting: Annotated[bool, typer.Option("--waiting", help="Only those that wait for an answer.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON object per thread.")] = False,
    server: ServerOption = None,
    header: HeaderOption = None,
) -> None:
    """List threads, and what they wait for."""

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.threads import list_threads

        return list_threads(screen, session, limit=limit, waiting=waiting, json=json)

    connected(work, server, header, json=json)


def show(
    thread: ThreadArgument,
    diff: Annotated[bool, typer.Option("--diff", help="Only the diff, ready for `git apply`.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Write state and questions as one object.")] = False,
    server: ServerOption = None,
    header: HeaderOption = None,
) -> None:
    """Show what a thread has come to."""

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.threads import show_thread

        return show_thread(screen, session, thread, diff=diff, json=json)

    connected(work, server, header, json=json)


def cancel(thread: ThreadArgument, server: ServerOption = None, header: HeaderOption = None) -> None:
    """Stop the run that works on a thread; what it wrote to the state stays."""

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.threads import cancel as stop

        return stop(screen, session, thread)

    connected(work, server, header)
