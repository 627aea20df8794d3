"""Collecting output of unknown length in bounded memory."""

from collections import deque


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

    def add(self, piece: str) -> None:
        """Take in the next piece."""
        self.total_chars += len(piece)
        room = self._half - self._head_chars
        if room > 0:
            self._head.append(piece[:room])
            self._head_chars += min(len(piece), room)
            piece = piece[room:]
        if not piece:
            return
        self._tail.append(piece)
        self._tail_chars += len(piece)
        while self._tail_chars - len(self._tail[0]) >= self._half:
            self._tail_chars -= len(self._tail.popleft())

    def text(self) -> str:
        """Return what was kept, with a line that says how much was dropped between head and tail."""
        head, tail = "".join(self._head), "".join(self._tail)
        dropped = self.total_chars - len(head) - len(tail)
        excess = len(tail) - self._half
        if dropped <= 0 and excess <= 0:
            return head + tail
        if excess > 0:
            tail, dropped = tail[excess:], dropped + excess
        return f"{head}\n… {dropped} characters left out …\n{tail}"
