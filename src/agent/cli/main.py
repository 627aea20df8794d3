"""The commands of `sandbox-agent`; what they do lives in the other modules.

Modules are imported when a command needs them: `--help` and `--version` load nothing of the package.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import exits
from agent.cli.entry import connected, guarded, screen_for

if TYPE_CHECKING:
    from agent.cli.follow import View
    from agent.cli.screen import Screen
    from agent.cli.session import Session

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=exits.HELP,
    help="LangGraph agents that write and run code in E2B sandboxes.",
)

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server", help="Address of the LangGraph server; default LANGGRAPH_URL.", show_default=False
    ),
]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", help="`Name: value`, sent with every request; may be repeated."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Approve without asking.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Write one JSON object per event.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also show tool output and the model's words.")
]
ModelOption = Annotated[
    str,
    typer.Option(help="Chat model for this run, `provider:name`; default the server's.", show_default=False),
]
ThreadArgument = Annotated[str, typer.Argument(help="Id of a thread; `sandbox-agent threads` lists them.")]


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


@app.command(epilog=exits.HELP)
def repair(
    path: Annotated[Path, typer.Argument(help="Folder of the project; at most 1 MB of text is sent.")],
    test: Annotated[str, typer.Option(help="Decides by its exit code whether the tests pass.")] = "",
    setup: Annotated[str, typer.Option(help="Runs once before the tests, such as an installation.")] = "",
    goal: Annotated[str, typer.Option(help="Words to the planner.")] = "",
    model: ModelOption = "",
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

    Git decides which files are sent (.gitignore is honoured); links, binary files and .env are left out.
    Without a terminal and without --yes the run stops at the plan; `resume` goes on with it.
    """

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.repair import RepairOptions, run_repair

        options = RepairOptions(test, setup, goal, model, yes, put_back, force, verbose, json)
        return run_repair(screen, session, path, options)

    connected(work, server, header, json=json)


@app.command(epilog=exits.HELP)
def chat(
    message: Annotated[
        str | None, typer.Argument(help="Say this and leave; default asks for messages, or reads a pipe.")
    ] = None,
    thread: Annotated[str | None, typer.Option(help="Go on with an earlier conversation.")] = None,
    charts: Annotated[Path | None, typer.Option(help="Folder for charts; default a temporary one.")] = None,
    model: ModelOption = "",
    yes: YesOption = False,
    json: JsonOption = False,
    server: ServerOption = None,
    header: HeaderOption = None,
) -> None:
    """Talk to an agent that answers by running code in a sandbox."""

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.chat import Chat
        from agent.cli.chat_view import ChatView
        from agent.cli.jsonl import JsonView
        from agent.cli.repair import decider

        said = message if message is not None or screen.can_ask else sys.stdin.read().strip()
        if said == "":
            raise typer.BadParameter("there is no message", param_hint="MESSAGE")
        view: View = JsonView() if json else ChatView(screen, charts=charts)
        talk = Chat(screen, session, view=view, decide=decider(screen, yes=yes), model=model)
        return talk.talk(thread, said)

    connected(work, server, header, json=json)


@app.command()
def threads(
    limit: Annotated[int, typer.Option(help="How many of the newest to look at.", min=1, max=1000)] = 20,
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


@app.command()
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


@app.command(epilog=exits.HELP)
def resume(
    thread: ThreadArgument,
    model: ModelOption = "",
    yes: YesOption = False,
    reject: Annotated[str, typer.Option(metavar="WORDS", help="Reject without asking, saying why.")] = "",
    json: JsonOption = False,
    verbose: VerboseOption = False,
    server: ServerOption = None,
    header: HeaderOption = None,
) -> None:
    """Answer what a thread waits for, or watch the run that works on it."""
    if yes and reject:
        raise typer.BadParameter("--yes approves; give one of the two", param_hint="--reject")

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.repair import decider
        from agent.cli.threads import Resumption

        go_on = Resumption(screen, session, verbose=verbose, json=json)
        return go_on(thread, decider(screen, yes=yes, no=reject), model=model)

    connected(work, server, header, json=json)


@app.command()
def cancel(thread: ThreadArgument, server: ServerOption = None, header: HeaderOption = None) -> None:
    """Stop the run that works on a thread; what it wrote to the state stays."""

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.threads import cancel as stop

        return stop(screen, session, thread)

    connected(work, server, header)


sandboxes = typer.Typer(no_args_is_help=True, help="Look at the deployment's sandboxes, and tidy up.")
app.add_typer(sandboxes, name="sandboxes")

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
        from agent.cli.sandboxes import Sweep, look_after
        from agent.settings import Settings

        return look_after(screen, session, Settings.from_env(), Sweep(end=False, trust_server=trust_server))

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
        from agent.cli.sandboxes import Sweep, look_after
        from agent.settings import Settings

        how = Sweep(end=not dry_run, trust_server=trust_server)
        return look_after(screen, session, Settings.from_env(), how)

    connected(work, server, header)


@app.command()
def doctor(server: ServerOption = None, header: HeaderOption = None) -> None:
    """Check Python, packages, keys, isolation and the server, and say what to do."""

    def work(screen: "Screen", session: "Session") -> int:
        from agent.cli.doctor import run_doctor
        from agent.cli.project import settings_here

        return run_doctor(screen, settings_here(), session)

    connected(work, server, header)


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
        from agent.cli.serve import run_serve

        wanted = {name for name, on in {"browser": browser, "reload": reload}.items() if on}
        return run_serve(screen_for(), port=port, jobs=jobs, wanted=wanted, isolated=not no_isolation)

    guarded(work)


def main() -> None:
    """Run the command line."""
    app()
