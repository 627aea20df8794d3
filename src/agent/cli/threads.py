"""List threads, show one, go on with one, cancel its run."""

from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from agent.cli import exits
from agent.cli.approval import show_question
from agent.cli.chat_view import ChatView
from agent.cli.follow import Follower, Left, View
from agent.cli.jsonl import JsonView
from agent.cli.repair import GRAPH, context, decider, show_outcome
from agent.cli.repair_text import report_lines
from agent.cli.repair_view import RepairView, show_result
from agent.cli.screen import Screen
from agent.cli.session import Session
from agent.client import Driver, Failed, Finished, Interrupt, ThreadSummary
from agent.client.decode import message_text, test_report


def list_threads(screen: Screen, session: Session, *, limit: int, waiting: bool) -> int:
    """Show the newest threads, and what each waits for.

    Args:
        screen: where to write.
        session: the connection.
        limit: how many to look at.
        waiting: only those that wait for an answer.
    """
    found = session.run(session.server.threads(limit=limit))
    shown = [thread for thread in found if thread.pending or not waiting]
    if not shown:
        screen.line("No thread waits for an answer." if waiting else "There are no threads.")
        return exits.OK
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("Thread", "Graph", "Status", "Changed", "Waits for"):
        table.add_column(column, no_wrap=column != "Waits for")
    for thread in shown:
        table.add_row(thread.thread_id, thread.graph, *_row(thread))
    screen.show(table)
    return exits.OK


def _row(thread: ThreadSummary) -> tuple[Text, str, Text]:
    style = {"error": "red", "interrupted": "yellow", "busy": "cyan"}.get(thread.status, "")
    asked = ", ".join(_asks(question) for question in thread.pending)
    return Text(thread.status, style), _local_time(thread.updated_at), Text(asked, "yellow")


def _asks(question: Interrupt) -> str:
    actions = question.value.get("action_requests") if isinstance(question.value, dict) else None
    names = [str(action.get("name")) for action in actions or [] if isinstance(action, dict)]
    return "approval of " + ", ".join(names) if names else "an answer"


def _local_time(text: str) -> str:
    try:
        return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return text


def show_thread(screen: Screen, session: Session, thread_id: str, *, diff: bool) -> int:
    """Show what a thread has come to, or only its diff, ready for `git apply`."""
    driver = _driver(session, thread_id)
    values = session.run(driver.values())
    if diff:
        text = str(values.get("diff") or "")
        screen.console.file.write(text)
        return exits.OK if text else exits.FAILED
    screen.line(f"thread {thread_id}", "bold")
    screen.line(f"  graph    {driver.graph or 'has not run'}")
    for name in ("sandbox_id", "iteration", "goal", "test_command"):
        if values.get(name):
            screen.line(f"  {name.replace('_id', ''):<8} {values[name]}")
    if driver.graph == GRAPH:
        _show_repair(screen, dict(values))
    else:
        _show_messages(screen, values.get("messages") or [])
    pending = session.run(driver.pending())
    for question in pending:
        show_question(screen, question.value)
    if pending:
        screen.line(f"Waits for an answer: sandbox-agent resume {thread_id}", "yellow")
    return exits.OK


def _show_repair(screen: Screen, values: dict[str, Any]) -> None:
    for heading, key in (("Tests before", "tests_before"), ("Tests after", "tests_after")):
        if values.get(key):
            screen.heading(heading)
            for line in report_lines(test_report(values[key])):
                screen.line(line)
    if values.get("status"):
        show_result(screen, Finished(values))


def _show_messages(screen: Screen, messages: list[Any]) -> None:
    for message in messages:
        text = message_text(message.get("content"))
        if message.get("type") in {"human", "ai"} and text:
            screen.line()
            screen.line(f"{'you' if message['type'] == 'human' else 'agent'}> {text}")


def resume(
    screen: Screen, session: Session, thread_id: str, *, model: str, yes: bool, verbose: bool, json: bool
) -> int:
    """Go on with a thread: answer what it waits for, or watch the run it is in."""
    driver = _driver(session, thread_id)
    driver.context = context(model)
    view: View
    if json:
        view = JsonView()
    else:
        view = RepairView(screen, verbose=verbose) if driver.graph == GRAPH else ChatView(screen)
    decide = decider(screen, yes=yes)
    follower = Follower(session, driver, screen=screen, view=view, decide=decide)
    pending = session.run(driver.pending())
    try:
        if pending:
            answers = decide(pending)
            if answers is None:
                screen.line("There is no terminal to answer on; --yes approves.", "yellow")
                return exits.FAILED
            outcome = follower.follow(driver.answer(answers), "Going on with the answer")
        else:
            outcome = follower.follow(driver.join(), "Watching the run")
    except Left:
        return exits.INTERRUPTED
    if driver.graph == GRAPH:
        return show_outcome(screen, outcome, thread_id)
    if isinstance(outcome, Failed):
        return exits.INTERRUPTED if outcome.status == "cancelled" else exits.PLATFORM
    return exits.OK


def cancel(screen: Screen, session: Session, thread_id: str) -> int:
    """Stop the run that works on a thread."""
    driver = _driver(session, thread_id)
    run_id = session.run(driver.running())
    if run_id is None or not session.run(driver.cancel(run_id)):
        screen.line("No run works on this thread.")
        return exits.OK
    screen.line(f"Run {run_id} is cancelled.")
    return exits.OK


def _driver(session: Session, thread_id: str) -> Driver:
    graph = session.run(session.server.graph_of(thread_id))
    return session.server.thread(graph, thread_id)
