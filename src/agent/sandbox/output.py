"""Taking in output of unknown length in bounded memory."""

import re
from collections import deque
from collections.abc import Callable
from itertools import chain

from agent.sandbox.provider import Spooled

_MAX_PIECES = 2_000
"""Held before they are joined: a piece of one character takes 80 bytes."""


class Excerpt(str):
    """A text of which parts were left out; as a string it has a note in place of each.

    It knows which notes are its own, wherever it is cut again: what a program prints may look like one.

    Args:
        parts: in order, what is there, and the numbers of bytes that are not.
    """

    parts: tuple[str | int, ...]

    def __new__(cls, *parts: str | int) -> "Excerpt":
        """Make it; neighbours of one kind become one part, and nothing is left out where it was no bytes."""
        made: list[str | int] = []
        for part in parts:
            if made and isinstance(part, str) is isinstance(made[-1], str):
                made[-1] += part  # type: ignore[operator]
            elif part:
                made.append(part)
        said = (_note(part) if isinstance(part, int) else part for part in made)
        self = super().__new__(cls, "".join(said))
        self.parts = tuple(made)
        return self

    def mapped(self, change: Callable[[str], str]) -> "Excerpt":
        """Return it with each text that is there changed."""
        return Excerpt(*(part if isinstance(part, int) else change(part) for part in self.parts))

    def without(self, start: int, end: int) -> "Excerpt":
        """Return it without the characters from `start` to `end`, and without the notes they are part of."""
        before: list[str | int] = []
        after: list[str | int] = []
        missing = at = 0
        for part in self.parts:
            size = len(_note(part)) if isinstance(part, int) else len(part)
            first, last = (min(max(place - at, 0), size) for place in (start, end))
            at += size
            if isinstance(part, str):
                before.append(part[:first])
                missing += size_of(part[first:last])
                after.append(part[last:])
            elif first == size:
                before.append(part)
            elif last == 0:
                after.append(part)
            else:
                missing += part
        return Excerpt(*before, missing, *after)


def parts_of(text: str) -> tuple[str | int, ...]:
    """Return a text's parts; one that is no excerpt is all there."""
    return text.parts if isinstance(text, Excerpt) else (text,)


def joined(texts: list[str]) -> Excerpt:
    """Return several texts as one, which knows what was left out of each."""
    return Excerpt(*chain.from_iterable(map(parts_of, texts)))


def size_of(text: str) -> int:
    """Return a text's size in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _note(left_out: int) -> str:
    return f"\n… {left_out} bytes left out …\n"


class BoundedText:
    """Keeps the head and the tail of a text that arrives in pieces, and counts what it drops.

    Args:
        max_chars: how much is kept, half of it head and half tail.
    """

    def __init__(self, max_chars: int) -> None:
        self._half = max_chars // 2
        self._head: list[str] = []
        self._head_chars = 0
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self.total_chars = 0
        self._total_bytes = 0

    def add(self, piece: str) -> None:
        """Take in the next piece."""
        self.total_chars += len(piece)
        self._total_bytes += size_of(piece)
        room = self._half - self._head_chars
        if room > 0:
            self._head.append(piece[:room])
            if len(self._head) > _MAX_PIECES:
                self._head = ["".join(self._head)]
            self._head_chars += min(len(piece), room)
            piece = piece[room:]
        if not piece:
            return
        self._tail.append(piece)
        if len(self._tail) > _MAX_PIECES:
            self._tail = deque(["".join(self._tail)])
        self._tail_chars += len(piece)
        while self._tail_chars - len(self._tail[0]) >= self._half:
            self._tail_chars -= len(self._tail.popleft())

    def text(self) -> str:
        """Return what was kept, with a line that says how many characters were dropped between both."""
        head, tail = self._ends()
        dropped = self.total_chars - len(head) - len(tail)
        return f"{head}\n… {dropped} characters left out …\n{tail}" if dropped else head + tail

    def excerpt(self) -> str:
        """Return what was kept, and how many bytes were dropped."""
        head, tail = self._ends()
        return Excerpt(head, self._total_bytes - size_of(head) - size_of(tail), tail)

    def _ends(self) -> tuple[str, str]:
        head, tail = "".join(self._head), "".join(self._tail)
        return head, tail[max(len(tail) - self._half, 0) :]


class Reception:
    """One stream as a sandbox's spool passes it on: head, mark, tail (see `e2b/inside/spool.py`).

    A program that prints the mark itself can only misstate how much it printed: where the whole is kept is
    not read from it. One that is not written as ours are is no mark, but text.

    Args:
        nonce: what makes the mark one of ours.
        path: where the sandbox keeps the whole.
        max_chars: the most that is held here, should the sandbox pass on more than it was told to.
    """

    def __init__(self, nonce: str, path: str, max_chars: int) -> None:
        self._opening = f"\x1e{nonce} "
        self._mark = re.compile(f"\x1e{nonce} ([0-9]{{1,15}}) ([0-9]{{1,15}}) ([0-9]{{1,15}}) ([01])\x1e")
        self._path = path
        self._kept = BoundedText(max_chars)
        self._held = ""
        self._marked = False

    def add(self, piece: str) -> str:
        """Take in the next piece; return what of it can be shown at once: no mark, and no tail after one."""
        self._kept.add(piece)
        if self._marked:
            return ""
        text = self._held + piece
        shown, opening, _ = text.partition(self._opening)
        self._marked = bool(opening)
        self._held = "" if self._marked else _beginning_of(self._opening, at_end_of=shown)
        return shown.removesuffix(self._held)

    def end(self) -> tuple[str, Spooled | None]:
        """Return the text without the mark, and what the mark told."""
        text = self._kept.excerpt()
        found = self._mark.search(text)
        if not found:
            return text, None
        total, left_out, kept, goes_on = map(int, found.groups())
        spooled = Spooled(self._path, total, kept, left_out, bool(goes_on)) if kept or goes_on else None
        return Excerpt(text[: found.start()], left_out, text[found.end() :].removeprefix("\ufffd")), spooled

    def excerpt(self) -> str:
        """Return a text with any number of marks, as one that knows what is missing in their places."""
        text = self._kept.text()
        parts: list[str | int] = []
        end = 0
        for found in self._mark.finditer(text):
            parts += [text[end : found.start()], int(found[2])]
            end = found.end()
        return Excerpt(*parts, text[end:])


def _beginning_of(word: str, *, at_end_of: str) -> str:
    """Return the longest beginning of a word that a text ends with."""
    return next((word[:n] for n in range(len(word) - 1, 0, -1) if at_end_of.endswith(word[:n])), "")
