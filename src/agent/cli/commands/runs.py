"""Commands that start or go on with runs: `repair`, `chat` and `resume`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.commands.options import (
    HeaderOption,
    JsonOption,
    ModelOption,
    ServerOption,
    ThreadArgument,
    VerboseOption,
    YesOption,
    folder,
    thread_id,
    words,
)
from agent.cli.entry import connected
from agent.cli.output import typed

if TYPE_CHECKING:
    from agent.cli.follow import View
    from agent.cli.screen import Screen
    from agent.cli.session import Session


def repair(
    path: Annotated[
        Path,
        typer.Argument(parser=folder, help="Folder of the project; at most 50 MB are sent, compressed."),
    ],
    test: Annotated[
        str, typer.Option(callback=words, help="Decides by its exit code whether the tests pass.")
    ] = "",
    setup: Annotated[
        str, typer.Option(callback=words, help="Runs once before the tests, such as an installation.")
    ] = "",
    goal: Annotated[str, typer.Option(callback=words, help="Words to the planner.")] = "",
    workdir: Annotated[
        str, typer.Option(callback=words, help="Folder in PATH that both commands start in.")
    ] = "",
    protect: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Files whose change is undone; repeatable; default tests."),
    ] = None,
    tries: Annotated[
        int | None, typer.Option(help="How many plans may be carried out.", min=1, max=10)
    ] = None,
    model: ModelOption = "",
    archive: Annotated[
        bool, typer.Option("--archive", help="Send an archive, as is done with files that are no text.")
    ] = False,
    put_back: Annotated[
        bool, typer.Option("--apply", help="Put the changes into PATH when the tests pass, after asking.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Apply over uncommitted changes, too.")] = False,
    yes: YesOption = False,
    json: JsonOption = False,
    verbose: VerboseOption = False,
    server: ServerOption = None,
    header: HeaderOption = None,
) -> None:
    """Repair a project whose tests fail: plan, ask, carry out, verify.

    Git decides which files are sent (.gitignore is honoured). What is left out, such as .env files and links
    out of the folder, is named.
    Without a terminal and without --yes the run stops at the plan; `resume` goes on with it.
    """

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.repair import RepairOptions, run_repair

        asked = {
            "test_command": test,
            "setup_command": setup,
            "goal": goal,
            "workdir": workdir,
            "protect": protect,
            "limits": {"tries": tries} if tries else None,
        }
        options = RepairOptions(asked, model, archive, yes, put_back, force, verbose, json)
        return run_repair(screen, session, path, options)

    connected(work, server, header, json=json)


def chat(
    message: Annotated[
        str | None,
        typer.Argument(
            callback=words, help="Say this and leave; default asks for messages, or reads a pipe."
        ),
    ] = None,
    thread: Annotated[
        str | None, typer.Option(help="Go on with an earlier conversation.", callback=thread_id)
    ] = None,
    upload: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Put a file into the sandbox; repeatable. Implies --keep."),
    ] = None,
    charts: Annotated[Path | None, typer.Option(help="Folder for charts; default a temporary one.")] = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep files and variables from turn to turn; default the server's way."),
    ] = False,
    ask_first: Annotated[
        list[str] | None,
        typer.Option(metavar="TOOL", help="Ask before each call of a tool, such as run_command; repeatable."),
    ] = None,
    model: ModelOption = "",
    yes: YesOption = False,
    json: JsonOption = False,
    server: ServerOption = None,
    header: HeaderOption = None,
) -> None:
    """Talk to an agent that answers by running code in a sandbox."""

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.chat import Chat, files_named
        from agent.cli.chat_view import ChatView
        from agent.cli.jsonl import JsonView
        from agent.cli.repair import decider

        said = message if message is not None or screen.can_ask else typed(sys.stdin.read()).strip()
        if said == "":
            raise typer.BadParameter("there is no message", param_hint="MESSAGE")
        view: View = JsonView() if json else ChatView(screen, charts=charts)
        kept = "thread" if keep or upload else ""  # files would end with the first turn
        wanted = {"model": model, "keep": kept, "ask_first": ask_first}
        talk = Chat(screen, session, view=view, decide=decider(screen, yes=yes), context=wanted)
        return talk.talk(thread, said, files_named(upload or []))

    connected(work, server, header, json=json)


def resume(
    thread: ThreadArgument,
    model: ModelOption = "",
    yes: YesOption = False,
    reject: Annotated[
        str | None,
        typer.Option(
            callback=words, metavar="WORDS", help='Reject without asking, saying why; "" ends a repair.'
        ),
    ] = None,
    json: JsonOption = False,
    verbose: VerboseOption = False,
    server: ServerOption = None,
    header: HeaderOption = None,
) -> None:
    """Answer what a thread waits for, or watch the run that works on it."""
    if yes and reject is not None:
        raise typer.BadParameter("--yes approves; give one of the two", param_hint="--reject")

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.repair import decider
        from agent.cli.threads import Resumption

        go_on = Resumption(screen, session, verbose=verbose, json=json)
        answered = yes or reject is not None
        return go_on(thread, decider(screen, yes=yes, no=reject), model=model, answered=answered)

    connected(work, server, header, json=json)
