"""List threads, show one, go on with one, cancel its run."""

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import typer
from rich.console import Group
from rich.table import Table

from agent.cli import exits
from agent.cli.approval import Decide
from agent.cli.chat import of_chat
from agent.cli.chat_view import ChatView
from agent.cli.follow import Follower, Left, View, say_it_failed, say_it_waits
from agent.cli.jsonl import JsonView
from agent.cli.question_view import show_question
from agent.cli.questions import actions
from agent.cli.repair import GRAPH, context, show_outcome
from agent.cli.repair_text import report_lines
from agent.cli.repair_view import RepairView, show_result
from agent.cli.screen import Screen
from agent.cli.session import Session
from agent.cli.visible import Text, one_line
from agent.client import Driver, Finished, Interrupt, NotFoundError, ThreadAccount, ThreadSummary
from agent.client.decode import message_text, test_report
from agent.client.fields import Fields, objects

_FORGOTTEN = "The server has forgotten this thread's state; start a new one."
_LONGEST_VALUE = 1000
_TABLE_WIDTH = 105  # narrower, a table would cut the ids


def list_threads(
    screen: Screen, session: Session, *, limit: int, waiting: bool = False, json: bool = False
) -> int:
    """Show the newest threads, and what each waits for.

    Args:
        screen: where to write.
        session: the connection.
        limit: how many to show at most.
        waiting: only those that wait for an answer, and those of which that cannot be read.
        json: as objects, on the standard output.
    """
    shown = session.run(session.server.threads(limit=limit, waiting=waiting))
    if json:
        for thread in shown:
            JsonView().write("thread", dataclasses.asdict(thread))
        return exits.OK
    if not shown:
        screen.line("No thread waits for an answer." if waiting else "There are no threads.")
        return exits.OK
    screen.show(_table(shown) if screen.console.width >= _TABLE_WIDTH else _blocks(shown))
    return exits.OK


def _table(threads: Sequence[ThreadSummary]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("Thread", "Graph", "Status", "Changed", "Waits for"):
        table.add_column(column, no_wrap=column != "Waits for")
    for thread in threads:
        table.add_row(thread.thread_id, one_line(thread.graph), *_row(thread))
    return table


def _blocks(threads: Sequence[ThreadSummary]) -> Group:
    """Give each thread two lines: an id that is cut cannot be copied."""
    shown: list[Text] = []
    for thread in threads:
        status, changed, asked = _row(thread)
        shown.append(Text(thread.thread_id))
        graph = one_line(thread.graph) or "-"
        shown.append(Text.assemble("  ", graph, "  ", status, f"  {changed}  ", asked))
    return Group(*shown)


def _row(thread: ThreadSummary) -> tuple[Text, str, Text]:
    style = {"error": "red", "interrupted": "yellow", "busy": "cyan"}.get(thread.status, "")
    asked = [_asks(question) for question in thread.pending] or ["an answer"] * thread.unseen
    waits = Text(one_line(", ".join(asked)), "yellow")
    if thread.problem:
        waits = Text(f"cannot be read: {one_line(thread.problem)}", "red")
    return Text(one_line(thread.status), style), _local_time(thread.updated_at), waits


def _asks(question: Interrupt) -> str:
    names = [action.name for action in actions(question.value)]
    return "approval of " + ", ".join(names) if names else "an answer"


def _local_time(text: str) -> str:
    try:
        return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):  # none, or one that no clock here shows
        return one_line(text)


def show_thread(
    screen: Screen, session: Session, thread_id: str, *, diff: bool = False, json: bool = False
) -> int:
    """Show what a thread has come to, or only its diff, ready for `git apply`; `json` gives all of it."""
    driver = _driver(session, thread_id)
    account = session.run(driver.account())
    values = account.values
    if json:
        JsonView().write("state", _as_object(driver, account))
        return exits.OK
    if diff:
        return _show_diff(screen, thread_id, account)
    screen.line(f"thread {thread_id}", "bold")
    screen.line(f"  graph    {one_line(driver.graph) or 'has not run'}")
    screen.line(f"  status   {one_line(account.status)}")
    for name in ("sandbox_id", "iteration", "goal", "test_command"):
        if values.get(name):
            screen.line(f"  {name.replace('_id', ''):<8} {one_line(str(values[name]), _LONGEST_VALUE)}")
    if driver.graph == GRAPH:
        _show_repair(screen, dict(values))
    else:
        _show_messages(screen, objects(values.get("messages")))
        _show_artifacts(screen, session, driver)
    for question in account.pending:
        show_question(screen, question.value)
    if account.failure:
        screen.line()
        say_it_failed(screen, account.failure)
    if account.forgotten:
        screen.line(_FORGOTTEN, "yellow")
    if account.waits:
        say_it_waits(screen, thread_id)
    return exits.OK


def _as_object(driver: Driver, account: ThreadAccount) -> dict[str, Any]:
    failure = account.failure
    return {
        "thread_id": driver.thread_id,
        "graph": driver.graph,
        "status": account.status,
        "error": {"error": failure.error, "message": failure.message} if failure else None,
        "values": account.values,
        "pending": [dataclasses.asdict(question) for question in account.pending],
    }


def _show_diff(screen: Screen, thread_id: str, account: ThreadAccount) -> int:
    text = str(account.values.get("diff") or "")
    screen.raw(text)
    if text:
        return exits.OK
    why = f" {_FORGOTTEN}" if account.forgotten else ""
    typer.echo(f"Thread {thread_id} has no diff.{why}", err=True)
    return exits.FAILED


def _show_repair(screen: Screen, values: dict[str, Any]) -> None:
    for heading, key in (("Tests before", "tests_before"), ("Tests after", "tests_after")):
        if values.get(key):
            screen.heading(heading)
            for line in report_lines(test_report(values[key])):
                screen.line(line)
    if values.get("status"):
        show_result(screen, Finished(values))


def _show_messages(screen: Screen, messages: list[Fields]) -> None:
    for message in messages:
        text = message_text(message.get("content"))
        if message.get("type") in ("human", "ai") and text:
            screen.line()
            screen.said("you> " if message["type"] == "human" else "agent> ", text)


def _show_artifacts(screen: Screen, session: Session, driver: Driver) -> None:
    try:
        found = session.run(driver.files.artifacts())
    except NotFoundError:  # a server without this package's routes
        return
    if found:
        screen.heading("Files")
    for each in found:
        name, kind = one_line(each.title or each.name), one_line(each.mime)
        screen.line(f"  {name}  {kind}, {each.size_bytes:,} bytes")
        screen.line(f"    {one_line(each.url, _LONGEST_VALUE)}", "dim")


class Resumption:
    """Goes on with threads: answers what they wait for, or watches the run they are in.

    Args:
        screen: where to write and ask.
        session: the connection.
        verbose: show tool output and the model's words too.
        json: write events as objects instead.
    """

    def __init__(
        self, screen: Screen, session: Session, *, verbose: bool = False, json: bool = False
    ) -> None:
        self._screen = screen
        self._session = session
        self._verbose = verbose
        self._json = json

    def __call__(self, thread_id: str, decide: Decide, *, model: str = "", answered: bool = False) -> int:
        """Go on with one thread and return the exit code.

        Args:
            thread_id: the thread.
            decide: answers what is asked.
            model: chat model from here on; default the server's.
            answered: the answer was given beforehand; then a thread that asks nothing, and on which no run
                works that may ask, is refused.
        """
        driver = _driver(self._session, thread_id)
        driver.context = context(model)
        follower = Follower(
            self._session, driver, screen=self._screen, view=self._view(driver), decide=decide
        )
        account = self._session.run(driver.account())
        if account.forgotten:
            self._screen.error(_FORGOTTEN)
            return exits.FAILED
        if answered and not account.waits and not account.works:
            self._screen.error(
                f"Nothing waits for an answer on thread {thread_id}; what you said was not used."
            )
            return exits.USAGE
        try:
            if account.waits:
                outcome = follower.settle(account)
            else:
                outcome = follower.follow(driver.join(), "Watching the run")
        except Left:
            return exits.INTERRUPTED
        if outcome is None:
            self._screen.line("  --yes approves, --reject WORDS says no.", "dim")
            return exits.FAILED
        shown = show_outcome if driver.graph == GRAPH else of_chat
        return shown(self._screen, outcome, thread_id)

    def _view(self, driver: Driver) -> View:
        if self._json:
            return JsonView()
        return (
            RepairView(self._screen, verbose=self._verbose)
            if driver.graph == GRAPH
            else ChatView(self._screen)
        )


def cancel(screen: Screen, session: Session, thread_id: str) -> int:
    """Stop the run that works on a thread."""
    driver = _driver(session, thread_id)
    run_id = session.run(driver.running())
    if run_id is None or not session.run(driver.cancel(run_id)):
        if session.run(driver.account()).waits:
            screen.line("No run works on this thread: it waits for an answer.")
            no = "ends it" if driver.graph == GRAPH else "says no to it"
            screen.line(f"`sandbox-agent resume {thread_id} --reject ''` {no}.")
        else:
            screen.line("No run works on this thread.")
        return exits.OK
    screen.line(f"Run {run_id} is cancelled.")
    return exits.OK


def _driver(session: Session, thread_id: str) -> Driver:
    graph = session.run(session.server.graph_of(thread_id))
    return session.server.thread(graph, thread_id)
