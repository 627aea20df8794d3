"""Sharing a message's bytes out, and cutting texts to their share."""

from collections.abc import Sequence

from agent.sandbox.output import Excerpt, parts_of

_NOTE_BYTES = 48
"""Room for the note in the middle of a cut text, its numbers included."""


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """Return how many bytes each text may have: what small ones leave goes to the large ones.

    Args:
        sizes: of the texts, in bytes.
        room: for all of them.
    """
    given = [0] * len(sizes)
    waiting = sorted(range(len(sizes)), key=lambda index: sizes[index])
    for count, index in zip(range(len(waiting), 0, -1), waiting, strict=True):
        given[index] = min(sizes[index], room // count)
        room -= given[index]
    return given


def clipped(text: str, max_bytes: int) -> str:
    """Return the text, or its head and tail with a note of how much is missing, in at most `max_bytes`.

    What is missing is counted of the whole, with what an `Excerpt` left out before. Characters are never cut
    in half; the note takes part of the budget. What cannot be text in UTF-8, such as half of a pair of
    surrogates, becomes a question mark.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return data.decode()
    half = max(max_bytes - _NOTE_BYTES, 0) // 2
    head = data[:half].decode("utf-8", "ignore")
    tail = data[len(data) - half :].decode("utf-8", "ignore")
    whole = Excerpt(*parts_of(text)).mapped(_encodable)
    return whole.without(len(head), len(whole) - len(tail))


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
