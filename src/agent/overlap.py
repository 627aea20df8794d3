"""How far the end of one text is the beginning of another: what a stream may still complete."""

import functools

_MAX_WORDS = 4_096


def overlap(text: str, word: str) -> int:
    """Return the length of the longest beginning of `word`, not all of it, that `text` ends with.

    Takes steps in proportion to the length of the word (Knuth, Morris and Pratt).
    """
    if not word:
        return 0
    borders, matched = _borders(word), 0
    for char in text[max(0, len(text) - len(word) + 1) :]:
        while matched and word[matched] != char:
            matched = borders[matched - 1]
        matched += word[matched] == char
    return matched


@functools.lru_cache(_MAX_WORDS)
def _borders(word: str) -> list[int]:
    """Return for each beginning of the word how much of its own beginning it ends with."""
    borders, matched = [0], 0
    for char in word[1:]:
        while matched and word[matched] != char:
            matched = borders[matched - 1]
        matched += word[matched] == char
        borders.append(matched)
    return borders
