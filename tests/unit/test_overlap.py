"""The end of one text that is the beginning of another."""

from hypothesis import given
from hypothesis import strategies as st

from agent.overlap import overlap


@given(st.text("ab", max_size=30), st.text("ab", max_size=12))
def test_overlap_is_the_longest_beginning_that_the_text_ends_with(text: str, word: str) -> None:
    """As trying each length finds it; a word that is there whole does not count as a beginning."""
    expected = next((n for n in range(len(word) - 1, 0, -1) if text.endswith(word[:n])), 0)
    assert overlap(text, word) == expected
