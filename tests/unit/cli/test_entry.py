"""How a command begins and ends: what it refuses to begin with, and what it says at the end."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
import typer

from agent.cli.commands.options import address, folder, thread_id
from agent.cli.entry import guarded, headers_of, hint, told
from agent.client import (
    BusyError,
    ClientError,
    NotFoundError,
    RefusedError,
    StaleAnswerError,
    StreamLostError,
    UnreachableError,
)
from agent.client.errors import Where

THREAD = "00000000-0000-4000-8000-000000000000"
WHERE = Where("http://s", THREAD, "r")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BusyError("busy", WHERE, "", 409), f"sandbox-agent resume {THREAD}"),
        (NotFoundError("no", WHERE, "", 404), "sandbox-agent threads"),
        (RefusedError("no", WHERE, "", 401), "LANGGRAPH_API_KEY"),
        (StreamLostError("lost", WHERE, ""), f"sandbox-agent resume {THREAD}"),
        (StaleAnswerError("elsewhere", WHERE, ""), f"sandbox-agent resume {THREAD}"),
        (StaleAnswerError("no", WHERE, "", ("j",)), f"`sandbox-agent resume {THREAD}` shows it."),
        (UnreachableError("none", Where("http://s"), ""), "sandbox-agent serve"),
        (RefusedError("no", WHERE, "", 500), ""),
    ],
)
def test_error_says_what_to_type_next(error: ClientError, words: str) -> None:
    """Where a command of ours helps; a failure of the server is for its log."""
    assert words in hint(error)
    assert bool(words) == bool(hint(error))


@pytest.mark.parametrize(
    ("open_now", "rest"),
    [(("j",), "Another question waits."), ((), "The thread waits for nothing.")],
)
def test_answer_that_came_too_late_is_told_without_ids(open_now: tuple[str, ...], rest: str) -> None:
    """The user has seen the question, and no id; another has answered it."""
    error = StaleAnswerError("No open question i", WHERE, "The thread waits for nothing.", open_now)
    assert told(error) == (
        f"The question was answered elsewhere meanwhile; your answer was not sent ({WHERE}). {rest}"
    )
    assert told(BusyError("busy", WHERE, "Wait.", 409)) == f"busy ({WHERE}). Wait."


@pytest.mark.parametrize(
    "given", ["nonsense", "ftp://x", "http://[::1", "http://", "http://h:99999", "http://h:0"]
)
def test_address_that_is_none_is_refused(given: str) -> None:
    """Before anything is connected, as wrong usage."""
    with pytest.raises(typer.BadParameter, match="is no address"):
        address(given)


@pytest.mark.parametrize("given", [None, "http://127.0.0.1:2024", "https://h/prefix", "http://[::1]:80"])
def test_address_is_taken_as_it_is(given: str | None) -> None:
    """Also with a path in front of the routes, and for IPv6."""
    assert address(given) == given


@pytest.mark.parametrize("given", ["", "nope", f"{THREAD}x", "../threads"])
def test_id_that_is_none_is_refused(given: str) -> None:
    """An empty one would ask the server for the list of threads."""
    with pytest.raises(typer.BadParameter, match="is no id of a thread"):
        thread_id(given)


def test_empty_path_names_no_folder() -> None:
    """A variable that is not set must not send the current folder; a dot does."""
    with pytest.raises(typer.BadParameter, match="an empty path names nothing"):
        folder("")
    assert folder(".") == Path()


@pytest.mark.parametrize("given", ["x", ": y", "a b: c", "a: é", "a: b\nc: d"])
def test_header_that_cannot_be_sent_is_refused(given: str) -> None:
    """A line feed in it would be a second header."""
    with pytest.raises(typer.BadParameter):
        headers_of([given])


def test_headers_are_names_and_values() -> None:
    """A value may hold colons."""
    assert headers_of(["X-A: b:c", "Authorization:Bearer t"]) == {"X-A": "b:c", "Authorization": "Bearer t"}


@pytest.fixture
def _signals() -> Iterator[None]:
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.mark.usefixtures("_signals")
def test_fault_of_ours_is_told_without_obeying_what_it_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback and a log hold foreign words; the exit code is not that of a failed repair."""

    def fail() -> NoReturn:
        sys.stderr.write("odd\x1b[2J\n")
        raise RuntimeError("\x1b]52;c;x\x07")

    with pytest.raises(typer.Exit) as left:
        guarded(fail)
    assert left.value.exit_code == 3
    said = capsys.readouterr().err
    assert "RuntimeError: ␛]52;c;x␇" in said
    assert "odd␛[2J" in said
    assert "\x1b" not in said


@pytest.mark.usefixtures("_signals")
def test_name_of_a_file_is_made_visible_where_it_is_refused() -> None:
    """Typer writes it by itself."""

    def refuse() -> NoReturn:
        raise typer.BadParameter("a\x1b[2J cannot be read")

    with pytest.raises(typer.BadParameter, match=r"a␛\[2J cannot be read"):
        guarded(refuse)
