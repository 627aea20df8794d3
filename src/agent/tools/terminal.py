"""What a terminal would show in the end of a text that was written for one.

Nothing else is lost: a control string that does not end costs its opening alone, since a program that is cut
off in the middle of one must not take the rest of its output with it.
"""

import re

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor moves, erasures
    r"|\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # window titles, links: one line, closed
    r"|P[0-9;]*q[!-~\r\n]*\x1b\\"  # pictures in sixel, whose lines have no spaces
    r"|_G[!-~]*\x1b\\"  # pictures in kitty's protocol
    r"|[PX^_][^\x07\x1b\n]*\x1b\\"  # other strings: one line, closed
    r"|[ -/]*[0-~])"  # all other escapes, and the opening of what is not closed
)
_CONTROLS = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_PIECES = re.compile(r"\x08+|[^\x08]+")


def plain(text: str) -> str:
    """Return the text without escape sequences, and of a line that was rewritten the last state.

    A progress bar that rewrites its line a thousand times is one line. A shorter rewriting is taken to have
    cleared the rest, as such programs see to. The time it takes grows with the length of the text.
    """
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text or "\b" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return _CONTROLS.sub("", text)


def _last_state(line: str) -> str:
    line = next((state for state in reversed(line.split("\r")) if state), "")
    return _overwritten(line) if "\b" in line else line


def _overwritten(line: str) -> str:
    """Return the line as it stands after backspaces, which move back and let what follows overwrite."""
    shown: list[str] = []
    at = 0
    for piece in _PIECES.findall(line):
        if piece[0] == "\b":
            at = max(0, at - len(piece))
        else:
            shown[at : at + len(piece)] = piece
            at += len(piece)
    return "".join(shown)
