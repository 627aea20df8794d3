"""Sharing a message's bytes out, and cutting texts to their share."""

import re
from collections.abc import Sequence

_NOTE_BYTES = 48
"""Room for the note in the middle of a cut text, its numbers included."""
_NOTE = re.compile(r"\n… ([0-9]{1,15}) bytes left out …\n")


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


def size(text: str) -> int:
    """Return a text's size in UTF-8."""
    return len(text.encode("utf-8", "replace"))


def clipped(text: str, max_bytes: int) -> str:
    """Return the text, or its head and tail with a note of how much is missing, in at most `max_bytes`.

    Characters are never cut in half; the note takes part of the budget. Where the text was cut before, the
    note tells what is missing of the whole. What cannot be text in UTF-8, such as
    half of a pair of surrogates, becomes a question mark.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return data.decode()
    half = max(max_bytes - _NOTE_BYTES, 0) // 2
    head = data[:half].decode("utf-8", "ignore")
    tail = data[len(data) - half :].decode("utf-8", "ignore")
    cut = data[len(head.encode()) : len(data) - len(tail.encode())]
    notes = list(_NOTE.finditer(cut.decode("utf-8", "replace")))
    left_out = len(cut) + sum(int(note[1]) - len(note[0].encode()) for note in notes)
    return f"{head}\n… {left_out} bytes left out …\n{tail}"
