"""The filter for what was written for a terminal: it eats nothing, and takes as long as the text is."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools.terminal import plain
from support.steps import steps_of


@pytest.mark.parametrize("start", ["\x1b]0;", "\x1b]8;;http://a", "\x1bP", "\x1bX", "\x1b^", "\x1b_G"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\x18", "\x1b[0m\n", "\n\x1b[0m"])
def test_plain_shows_what_follows_an_unfinished_control_string(start: str, end: str) -> None:
    """No title, link or picture hides the next line, finished or not, nor one whose end comes lines later."""
    assert "FAILED test_a\n" in plain(f"{start}building{end}FAILED test_a\n")
    assert "FAILED test_a\n" in plain(f"{start}building{end}FAILED test_a\n and on\x07 or \x1b\\")


def test_plain_shows_an_unfinished_control_string_itself() -> None:
    """Where none ends, nobody knows where it was meant to: what was printed stays to be read."""
    assert plain("\x1b]0;building FAILED test_a") == "0;building FAILED test_a"
    assert plain("\x1b[" + "1" * 100 + "FAILED") == "1" * 100 + "FAILED"
    assert plain("\x1b") == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("10%\b\b\b20%\b\b\b", "20%"),
        ("10%\b\b\b20%\b\b\b\r\nok\n", "20%\nok\n"),
        ("abc\b \b\b \b", "a"),
        ("x\by\b\nnext", "y\nnext"),
        ("\b\b\b", ""),
        ("10%\r20%\b\b\b\r", "20%"),
        ("a\b\nb\b\b\bc\n", "a\nc\n"),
    ],
)
def test_plain_keeps_the_last_state_of_a_line_that_goes_back(text: str, shown: str) -> None:
    """To go back clears nothing: what is written then does, and blanks wipe."""
    assert plain(text) == shown


@given(st.text(st.sampled_from("ab \n\t"), max_size=60), st.integers(0, 60))
def test_plain_loses_no_text_to_an_escape_that_is_none(text: str, at: int) -> None:
    """A start of a control string anywhere costs no letter of the lines around it."""
    at = min(at, len(text))
    assert plain(f"{text[:at]}\x1b]{text[at:]}") == text


@pytest.mark.parametrize(
    "made",
    [
        lambda n: "x" * n + "\b" * n,
        lambda n: "x\b" * n,
        lambda n: "\b" * n + "x" * n,
        lambda n: "xy\b\n" * n,
        lambda n: "x\r" * n,
        lambda n: "\x1b]0;" * n,
        lambda n: "\x1b]0;" + "x" * n,
        lambda n: "\x1b[" + "0" * n,
        lambda n: "\x1b[1m" * n,
    ],
    ids=range(9),
)
def test_plain_takes_steps_as_the_text_grows(made: Callable[[int], str]) -> None:
    """Twice the text takes twice the steps, whatever it is made of."""
    few, many = (steps_of(lambda n=n: plain(made(n))) for n in (2_000, 4_000))  # type: ignore[misc]
    assert many <= 2 * few + 500
