"""The commands that look after threads, against a scripted server."""

import json
from typing import Any

import pytest

from agent.cli import exits
from agent.cli.approval import left_open
from agent.cli.repair import show_outcome
from agent.cli.session import Session
from agent.cli.threads import Resumption, cancel, list_threads, show_thread
from agent.client import Failed
from support.sheet import Sheet
from support.thread_server import FakeServer


def test_show_says_why_the_last_run_failed(server: FakeServer, session: Session) -> None:
    """With the server's text, also where nothing else is left of the thread."""
    server.thread |= {"status": "error", "error": {"error": "ModelError", "message": "no key"}}
    server.runs = [{"run_id": "r", "status": "error"}]
    sheet = Sheet()
    show_thread(sheet, session, "t")
    assert "status   error" in sheet.text
    assert "The run failed: ModelError: no key" in sheet.text


def test_show_takes_the_reason_from_the_state_where_the_thread_has_none(
    server: FakeServer, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    """A task's error is text; objects carry it, too."""
    server.thread["status"] = "error"
    server.state["tasks"] = [{"error": None}, {"error": "ValueError('x')"}]
    show_thread(Sheet(), session, "t", json=True)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["status"], shown["error"]["message"]) == ("error", "ValueError('x')")


@pytest.mark.parametrize(("status", "runs"), [("interrupted", []), ("idle", [{"status": "success"}])])
def test_thread_whose_state_is_forgotten_says_so(
    server: FakeServer, session: Session, status: str, runs: list[dict[str, Any]]
) -> None:
    """`show` and `resume` alike: there is nothing to go on with, and no result."""
    server.thread["status"], server.runs = status, runs
    shown, resumed = Sheet(), Sheet()
    show_thread(shown, session, "t")
    assert Resumption(resumed, session)("t", left_open(resumed)) == exits.FAILED
    assert "has forgotten this thread's state; start a new one" in shown.text
    assert "has forgotten this thread's state; start a new one" in resumed.text
    assert "Result" not in resumed.text


@pytest.mark.parametrize("runs", [[], [{"status": "pending"}]])
def test_thread_without_state_is_not_forgotten_before_it_ran(
    server: FakeServer, session: Session, runs: list[dict[str, Any]]
) -> None:
    """Nothing was lost."""
    server.runs = runs
    sheet = Sheet()
    show_thread(sheet, session, "t")
    assert "forgotten" not in sheet.text


def test_show_says_on_the_standard_error_that_there_is_no_diff(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    """The standard output is for `git apply`."""
    sheet = Sheet()
    assert show_thread(sheet, session, "t", diff=True) == exits.FAILED
    assert sheet.text == ""
    assert "Thread t has no diff." in capsys.readouterr().err


def test_waiting_threads_are_found_behind_newer_ones(server: FakeServer, session: Session) -> None:
    """Older than `limit` others, and those that a malformed answer gave the status `error`."""
    server.listed = [
        {"thread_id": f"{status}-{n}", "status": status, "updated_at": f"2026-01-01T00:{n:02}:00+00:00"}
        for status in ("idle", "error", "interrupted")
        for n in range(10, 60)
    ] * 3
    old = [("old-a", "error", "00"), ("old-b", "interrupted", "01"), ("old-c", "interrupted", "02")]
    server.listed += [
        {"thread_id": name, "status": status, "updated_at": f"2026-01-01T00:{minute}:00+00:00"}
        for name, status, minute in old
    ]
    server.waiting = {name for name, _, _ in old}
    sheet = Sheet()
    list_threads(sheet, session, limit=2, waiting=True)
    assert [name for name in ("old-c", "old-b", "old-a") if name in sheet.text] == ["old-c", "old-b"]
    assert "idle" not in sheet.text


@pytest.mark.parametrize("waiting", [False, True])
def test_thread_that_cannot_be_read_is_listed_as_such(
    server: FakeServer, session: Session, capsys: pytest.CaptureFixture[str], waiting: bool
) -> None:
    """With the server's reason; it may wait, and it takes no other thread's place."""
    server.listed = [
        {"thread_id": name, "status": "error", "updated_at": f"2026-01-01T00:0{minute}:00+00:00"}
        for minute, name in enumerate(("asks", "broken", "broken-too"))
    ]
    server.waiting, server.unreadable = {"asks"}, {"broken", "broken-too"}
    limit = 1 if waiting else 3
    sheet = Sheet()
    assert list_threads(sheet, session, limit=limit, waiting=waiting) == exits.OK
    lines = {line.split()[0]: line for line in sheet.text.splitlines()[1:]}
    assert list(lines) == ["broken-too", "asks"] if waiting else ["broken-too", "broken", "asks"]
    assert "cannot be read: Unexpected message type: 'nobody' [400]" in lines["broken-too"]
    assert "an answer" in lines["asks"]
    list_threads(sheet, session, limit=limit, waiting=waiting, json=True)
    newest, *_, oldest = map(json.loads, capsys.readouterr().out.splitlines())
    assert (newest["problem"], oldest["problem"]) == ("Unexpected message type: 'nobody' [400]", "")


def test_run_whose_input_was_wrong_ends_as_wrong_usage() -> None:
    """Such as a workdir that the project does not have; other failures are the platform's."""
    assert show_outcome(Sheet(), Failed("no such workdir", "InputError"), "t") == exits.USAGE
    assert show_outcome(Sheet(), Failed("no key", "SandboxKeyError"), "t") == exits.PLATFORM


@pytest.mark.parametrize("status", ["success", "error", "interrupted"])
def test_answer_to_nothing_is_refused(server: FakeServer, session: Session, status: str) -> None:
    """An ended run is not watched again, as if it had been answered."""
    server.runs = [{"run_id": "r", "status": status}]
    server.state["values"] = {"status": "passed"}
    sheet = Sheet()
    assert Resumption(sheet, session)("t", left_open(sheet), answered=True) == exits.USAGE
    assert sheet.text == "Nothing waits for an answer on thread t; what you said was not used.\n"
    assert not any(asked.endswith("/stream") for asked in server.asked)


@pytest.mark.parametrize(("status", "answered"), [("running", True), ("pending", True), ("success", False)])
def test_run_is_watched_where_an_answer_may_be_used_or_none_was_given(
    server: FakeServer, session: Session, status: str, answered: bool
) -> None:
    """A run that works may ask yet; one that has ended is shown again."""
    server.runs = [{"run_id": "r", "status": status}]
    server.state["values"] = {"status": "passed"}
    server.run = {"run_id": "r", "status": "success"}
    sheet = Sheet()
    assert Resumption(sheet, session)("t", left_open(sheet), answered=answered) == exits.OK
    assert "GET /threads/t/runs/r/stream" in server.asked


def test_cancel_of_a_waiting_thread_says_how_to_end_it(server: FakeServer, session: Session) -> None:
    """No run works, and yet it is not done."""
    server.waiting = {"t"}
    sheet = Sheet()
    cancel(sheet, session, "t")
    assert "it waits for an answer" in sheet.text
    assert "sandbox-agent resume t --reject ''` ends it" in sheet.text
