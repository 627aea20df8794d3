"""Taking in output of unknown length in bounded memory."""

import re
from collections import deque

from agent.overlap import overlap
from agent.sandbox.provider import Spooled

_MAX_PIECES = 2_000
"""Held before they are joined: a piece of one character takes 80 bytes."""


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
        self._dropped_bytes = 0
        self.total_chars = 0

    def add(self, piece: str) -> None:
        """Take in the next piece."""
        self.total_chars += len(piece)
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
            dropped = self._tail.popleft()
            self._tail_chars -= len(dropped)
            self._dropped_bytes += _size(dropped)

    def text(self) -> str:
        """Return what was kept, with a line that says how much was dropped between head and tail."""
        head, tail = "".join(self._head), "".join(self._tail)
        excess = max(0, len(tail) - self._half)
        dropped = self._dropped_bytes + _size(tail[:excess])
        return f"{head}\n… {dropped} bytes left out …\n{tail[excess:]}" if dropped else head + tail


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


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
        self._held = "" if self._marked else self._opening[: overlap(shown, self._opening)]
        return shown.removesuffix(self._held)

    def end(self) -> tuple[str, Spooled | None]:
        """Return the text without the mark, and what the mark told."""
        text = self._kept.text()
        found = self._mark.search(text)
        if not found:
            return text, None
        total, left_out, kept, goes_on = map(int, found.groups())
        gap = f"\n… {left_out} bytes left out …\n" if left_out else ""
        spooled = Spooled(self._path, total, kept, left_out, bool(goes_on)) if kept or goes_on else None
        return text[: found.start()] + gap + text[found.end() :].removeprefix("\ufffd"), spooled
