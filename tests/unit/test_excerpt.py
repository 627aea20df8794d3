"""A text of which parts were left out, cut again: the numbers are those of the whole."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.repair.report import TestReport
from agent.sandbox.output import BoundedText, Excerpt, joined, size_of
from agent.sandbox.provider import CodeError, CodeResult, CommandResult, Spooled
from agent.tools.budget import clipped
from agent.tools.results import _traceback, code_text, command_text

PARTS = st.lists(st.one_of(st.text(max_size=80), st.integers(1, 10**12)), max_size=7)


def left_out(text: str) -> list[int]:
    """Return the numbers that a message tells."""
    return [int(found) for found in re.findall(r"\n… (\d+) bytes left out …\n", text)]


def known(excerpt: Excerpt) -> int:
    """Return how many bytes the whole has."""
    return sum(part if isinstance(part, int) else size_of(part) for part in excerpt.parts)


@given(PARTS, st.integers(0, 700), st.integers(0, 700))
def test_excerpt_that_is_cut_again_still_knows_the_whole(parts: list[str | int], a: int, b: int) -> None:
    """Wherever the cut begins and ends, in a text, in a note, or over several."""
    whole = Excerpt(*parts)
    cut = whole.without(min(a, b, len(whole)), min(max(a, b), len(whole)))
    assert known(cut) == known(whole)
    assert cut == "".join(p if isinstance(p, str) else f"\n… {p} bytes left out …\n" for p in cut.parts)


@given(PARTS, st.integers(60, 500))
def test_clipped_counts_what_is_missing_of_the_whole(parts: list[str | int], budget: int) -> None:
    """What was left out before is counted with what is left out now, and the budget holds."""
    whole = Excerpt(*parts)
    out = clipped(whole, budget)
    assert len(out.encode()) <= budget
    if isinstance(out, Excerpt):
        assert known(out) == known(whole)


def test_clipped_takes_no_printed_note_for_its_own() -> None:
    """A program that prints such a line, as a log of ours has it, changes no number."""
    printed = "\n… 999 bytes left out …\n" * 100
    cut = clipped(Excerpt(printed, 5_000_000, printed), 1_000)
    assert isinstance(cut, Excerpt)
    assert known(cut) == 2 * size_of(printed) + 5_000_000


@pytest.mark.parametrize("tool", ["cell", "command", "tests"])
def test_messages_tell_what_was_left_out_of_the_whole(tool: str) -> None:
    """Of five megabytes, of which the sandbox passed on head and tail, and the message shows less."""
    stdout = Excerpt("a" * 65_536, 5_000_000 - 131_072, "z" * 65_536)
    spooled = {"stdout": Spooled("/tmp/agent-output/1.stdout", 5_000_000, 5_000_000, 5_000_000 - 131_072)}
    if tool == "cell":
        error = CodeError("ValueError", "no", "Traceback\n" * 5)
        said = code_text(CodeResult(stdout, "", error=error, spooled=spooled), 5, 16_384)
    elif tool == "command":
        said = command_text(CommandResult(1, stdout, "why\n", spooled=spooled), 5, 16_384)
    else:
        said = TestReport.of(CommandResult(1, stdout, "\n", spooled=spooled)).output
    shown = len(re.findall("a{9,}|z{9,}", said)[0]) + len(re.findall("a{9,}|z{9,}", said)[1])
    assert left_out(said) == [5_000_000 - shown]


def test_long_traceback_tells_what_was_left_out_of_it() -> None:
    """Its middle, with what its lines had lost before; head and end of it are there."""
    lines = joined([f"line {n}\n" for n in range(50)] + [Excerpt("quoted ", 7_000_000, " end\n")] * 2)
    cut = _traceback(lines)
    assert known(cut) == known(lines)
    assert cut.startswith("line 0\nline 1\n")
    assert cut.endswith("quoted \n… 7000000 bytes left out …\n end\n")
    assert len(cut.splitlines()) < 30


def test_bounded_text_counts_bytes_for_an_excerpt() -> None:
    """In whatever pieces it came, and of characters that are several bytes."""
    kept = BoundedText(100)
    for _ in range(1_000):
        kept.add("€a")
    text = kept.excerpt()
    assert isinstance(text, Excerpt)
    assert known(text) == 4_000
