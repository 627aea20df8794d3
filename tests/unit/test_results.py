"""How results are worded for the model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sandbox.output import BoundedText
from agent.sandbox.provider import CodeError, CodeResult, CommandResult, FileEntry, RichResult
from agent.tools.results import clipped, code_text, command_text, file_text, listing_text


def test_command_text_puts_the_exit_code_first() -> None:
    """A non-zero exit is a result with everything the command printed."""
    text = command_text(CommandResult(3, "a\n", "b"), 60, 1000)
    assert text == "exit_code: 3\n<stdout>\na\n</stdout>\n<stderr>\nb\n</stderr>"


def test_command_text_says_timed_out_and_not_an_exit_code() -> None:
    """A timeout is not dressed up as an exit code."""
    text = command_text(CommandResult(None, "part", "", timed_out=True), 5, 1000)
    assert text.startswith("timed out after 5 s")
    assert "exit_code" not in text
    assert "part" in text


def test_command_text_says_when_the_outcome_is_unknown() -> None:
    """A stream that ended without an exit code is neither success nor failure."""
    text = command_text(CommandResult(None, "", ""), 5, 1000)
    assert text.startswith("outcome unknown")


def test_code_text_shows_error_name_value_and_traceback() -> None:
    """The model sees what went wrong and where."""
    error = CodeError("ZeroDivisionError", "division by zero", "line 1\nline 2")
    text = code_text(CodeResult("out", "", error=error), 5, 1000)
    assert "<error>\nZeroDivisionError: division by zero\nline 1\nline 2\n</error>" in text


def test_code_text_keeps_results_in_order_and_names_images() -> None:
    """Charts and tables are told apart, in the order they were displayed."""
    results = (
        RichResult({"image/png": "AAAA" * 1000, "text/plain": "<Figure>"}, is_main=False),
        RichResult({"text/plain": "42"}, is_main=True),
    )
    text = code_text(CodeResult("", "", results=results), 5, 1000)
    assert text.index("image/png, 3 KB") < text.index("42")


def test_code_text_says_ok_when_there_is_nothing() -> None:
    """Silence is not taken for a failure."""
    assert code_text(CodeResult("", ""), 5, 1000) == "ok, no output"


def test_file_text_of_binary_says_binary_and_size() -> None:
    """Bytes that are no text raise nothing and say what they are."""
    assert file_text("x.bin", bytes(range(256)), 1000).startswith("x.bin is binary: 256 bytes")


@pytest.mark.parametrize(
    ("text", "lines"), [("", "0-0 of 0"), ("a", "1-1 of 1"), ("a\n", "1-1 of 1"), ("a\nb", "1-2 of 2")]
)
def test_file_text_counts_lines(text: str, lines: str) -> None:
    """The range is right with and without a newline at the end."""
    assert f'lines="{lines}"' in file_text("a", text.encode(), 1000)


def test_file_text_says_when_a_file_is_cut() -> None:
    """A file shown in part says so in its heading, and ends with a whole line."""
    shown = file_text("a", b"0123456789\n" * 50, 100)
    assert 'lines="1-9 of 50" note="cut: the file has 550 bytes' in shown
    assert shown.endswith("0123456789\n</file>")


def test_listing_text_marks_folders_and_emptiness() -> None:
    """An empty folder is said to be empty."""
    assert listing_text([]) == "(the folder is empty)"
    entries = [("b", FileEntry("/b", "file", 1)), ("a", FileEntry("/a", "folder", 0))]
    assert listing_text(entries) == "a/\nb"


@given(st.text(), st.integers(min_value=200, max_value=4000))
def test_clipped_is_within_budget_and_keeps_head_and_tail(text: str, budget: int) -> None:
    """Any text: valid UTF-8 within the budget, with the first and the last characters."""
    text = text * 50
    out = clipped(text, budget)
    assert len(out.encode()) <= budget or out == text
    if out != text:
        assert out[:20] == text[:20]
        assert out[-20:] == text[-20:]


@given(st.lists(st.text(max_size=40)), st.integers(min_value=2, max_value=60))
def test_bounded_text_keeps_head_and_tail_of_pieces(pieces: list[str], limit: int) -> None:
    """However a text arrives in pieces, head and tail are kept and the rest is counted."""
    kept = BoundedText(limit)
    for piece in pieces:
        kept.add(piece)
    whole = "".join(pieces)
    assert kept.total_chars == len(whole)
    if len(whole) <= limit // 2 * 2:
        assert kept.text() == whole
    else:
        half = limit // 2
        assert (
            kept.text() == f"{whole[:half]}\n… {len(whole) - 2 * half} characters left out …\n{whole[-half:]}"
        )
