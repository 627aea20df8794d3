"""Repair a folder: pack it, follow the run, and put the changes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.cli import exits
from agent.cli.approval import Decide, asked, automatic, left_open, rejected
from agent.cli.follow import Follower, Left, View, open_questions, say_it_waits
from agent.cli.jsonl import JsonView
from agent.cli.listing import NOT_TRACKED
from agent.cli.pack import Packed, PackError, pack
from agent.cli.patch import PatchError, apply, cautions, kept_as_they_are, refuse_uncommitted, touched
from agent.cli.repair_view import RepairView, show_result
from agent.cli.screen import Screen
from agent.cli.session import Session
from agent.cli.visible import one_line
from agent.client import Finished, Interrupted, Outcome

GRAPH = "plan_execute"
_LONGEST_LIST = 2000  # characters of names in a line; the diff that is shown has all of them


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """What the command line's user chose."""

    asked: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the graph's input beside the project; what is empty is left to the graph."""
    model: str = ""
    archived: bool = False
    yes: bool = False
    put_back: bool = False
    force: bool = False
    verbose: bool = False
    json: bool = False


def run_repair(screen: Screen, session: Session, folder: Path, options: RepairOptions) -> int:
    """Repair a folder on a server, and return the exit code.

    Args:
        screen: where to write and ask; with `--json` not the standard output.
        session: the connection.
        folder: the project; changed only with `options.put_back`.
        options: what the user chose.
    """
    try:
        packed = pack(folder, archived=options.archived)
        if options.put_back and not options.force:
            refuse_uncommitted(folder, packed.names)
    except (PackError, PatchError) as exc:
        screen.error(str(exc))
        return exits.USAGE
    _say_what_is_sent(screen, packed, verbose=options.verbose)
    view: View = JsonView() if options.json else RepairView(screen, verbose=options.verbose)
    try:
        driver = session.run(session.server.new_thread(GRAPH, context=context(options.model)))
        screen.line(f"  thread {driver.thread_id} on {session.server.url}", "dim")
        if packed.archive:
            with screen.busy("Uploading the project"):
                session.run(driver.files.upload_project(packed.archive))
        decide = decider(screen, yes=options.yes)
        follower = Follower(session, driver, screen=screen, view=view, decide=decide)
        outcome = follower.follow(driver.start(request(packed, options)), "Running the tests as they are")
    except Left:
        return exits.INTERRUPTED
    code = show_outcome(screen, outcome, driver.thread_id)
    if code == exits.OK and options.put_back and isinstance(outcome, Finished):
        return _put_back(screen, str(outcome.values.get("diff") or ""), folder, packed, options)
    return code


def request(packed: Packed, options: RepairOptions) -> dict[str, Any]:
    """Return the graph's input; what the user left empty is left to the graph."""
    project = {"project": packed.project} if packed.project else {}
    return project | {name: value for name, value in options.asked.items() if value}


def context(model: str) -> dict[str, Any]:
    """Return the context to send with each run."""
    return {"model": model} if model else {}


def decider(screen: Screen, *, yes: bool, no: str | None = None) -> Decide:
    """Return who answers the questions: `--yes`, `--reject`, the human, or nobody without a terminal."""
    if yes:
        return automatic(screen, "--yes was given.")
    if no is not None:
        return rejected(screen, no)
    return asked(screen) if screen.can_ask else left_open(screen)


def show_outcome(screen: Screen, outcome: Outcome, thread_id: str) -> int:
    """Show how a run of `plan_execute` ended, and return the exit code."""
    if open_questions(outcome):
        say_it_waits(screen, thread_id)
    if isinstance(outcome, Interrupted):
        return exits.FAILED
    if not isinstance(outcome, Finished):
        if outcome.error == "InputError":  # such as a workdir that is not in the project
            return exits.USAGE
        return exits.INTERRUPTED if outcome.status == "cancelled" else exits.PLATFORM
    status = show_result(screen, outcome)
    if _has_diff(outcome.values):
        screen.line(f"  The diff again: sandbox-agent show {thread_id} --diff", "dim")
    return exits.of_status(status)


def _has_diff(values: Mapping[str, Any]) -> bool:
    return bool(values.get("diff"))


def _say_what_is_sent(screen: Screen, packed: Packed, *, verbose: bool) -> None:
    what = "bytes as an archive" if packed.archive else "bytes of text"
    screen.line(f"Sending {packed.count} file{'s' if packed.count != 1 else ''}, {packed.size:,} {what}.")
    if packed.left_out:
        # What everybody leaves out comes last.
        names = sorted(packed.left_out, key=lambda name: (packed.left_out[name] == NOT_TRACKED, name))
        shown = names if verbose else names[:3]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        listed = ", ".join(f"{one_line(name)} ({packed.left_out[name]})" for name in shown)
        screen.line(f"  left out: {listed}{more}", "dim")


def _put_back(screen: Screen, diff: str, folder: Path, packed: Packed, options: RepairOptions) -> int:
    if not diff:
        return exits.OK
    try:
        names = touched(diff)
        kept = [name for name in kept_as_they_are(folder, names) if name not in packed.names]
    except PatchError as exc:
        screen.error(str(exc))
        return exits.FAILED
    if kept:
        listed = one_line(", ".join(kept), _LONGEST_LIST)
        screen.line(f"Your own, since git ignores them here, and left as they are: {listed}.", "yellow")
    names = [name for name in names if name not in kept]
    if not names:
        return exits.OK
    for caution in cautions(diff, names):
        screen.line(caution, "yellow")
    if not options.yes:
        if not screen.can_ask:
            screen.line("Not applied: there is no terminal to ask on, and --yes was not given.", "yellow")
            return exits.OK
        named = one_line(", ".join(names), _LONGEST_LIST)
        if screen.ask(f"Change {named} in {folder}? [y]es, anything else no: ").lower() not in {"y", "yes"}:
            return exits.OK
    try:
        changed = apply(diff, folder, force=options.force, sent=packed.names)
    except PatchError as exc:
        screen.error(str(exc))
        return exits.FAILED
    screen.line(f"Changed {one_line(', '.join(changed), _LONGEST_LIST)}.", "green")
    return exits.OK
