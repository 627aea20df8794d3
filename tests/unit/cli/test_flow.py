"""Words that arrive in pieces, broken into lines between words."""

import pytest

from agent.cli.flow import Flow


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        (["one two three four"], ["one two", "three four"]),
        (["one tw", "o th", "ree"], ["one two", "three"]),
        (["a\n\n", "  b"], ["a", "", "  b"]),
        (["exactly te", "n\n", "next"], ["exactly", "ten", "next"]),
        (["1234567890", " ", "x"], ["1234567890", "x"]),
        (["abcdefghijklmnop x"], ["abcdefghijklmnop x"]),
        (["\u6f22\u5b57\u6f22\u5b57 \u6f22\u5b57"], ["\u6f22\u5b57\u6f22\u5b57", "\u6f22\u5b57"]),
        ([""], [""]),
    ],
)
def test_lines_break_between_words(pieces: list[str], lines: list[str]) -> None:
    """However words are cut into pieces; wide characters take two columns; a long word is the terminal's."""
    flow = Flow(10)
    written = "".join([*map(flow.feed, pieces), flow.end()])
    assert [line.rstrip() for line in written.split("\n")] == lines


def test_nothing_is_lost() -> None:
    """But the spaces that a break takes the place of."""
    text = "The quick  brown fox\njumps over the lazy dog. " * 5
    flow = Flow(12)
    written = "".join([*(flow.feed(letter) for letter in text), flow.end()])
    assert written.split() == text.split()
    assert max(len(line.rstrip()) for line in written.split("\n")) <= 12
