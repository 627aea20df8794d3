"""Words that arrive in pieces, broken into lines between words."""

import re

from rich.cells import cell_len

_LONGEST_WORD = 10_000  # characters
_PIECE = re.compile(r"\n|[^\S\n]+|\S+")


class Flow:
    """Turns pieces of text into what to write; the last word waits until its end is known.

    Args:
        width: of a line, in columns.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._word = ""

    def feed(self, text: str) -> str:
        """Take in a piece; return what can be written by now."""
        return "".join(self._piece(piece) for piece in _PIECE.findall(text))

    def end(self) -> str:
        """Return what is left; the next piece begins a line."""
        rest = self._finished()
        self._column = 0
        return rest

    def _piece(self, piece: str) -> str:
        if not piece.isspace():
            self._word += piece
            # One without an end would never be written, and never be let go.
            return self._finished() if len(self._word) > _LONGEST_WORD else ""
        word = self._finished()
        if piece == "\n" or self._column + len(piece) >= self._width:
            self._column = 0
            return f"{word}\n"
        self._column += len(piece)
        return word + piece

    def _finished(self) -> str:
        word, self._word = self._word, ""
        width = cell_len(word)
        fits = self._column + width <= self._width or self._column == 0
        # A word longer than a line is broken by the terminal.
        self._column = (self._column + width if fits else width) % (self._width + 1)
        return word if fits else f"\n{word}"
