"""What a terminal would show in the end of a text that was written for one.

What cannot be told to be a terminal's own is text, and stays: a filter that takes more eats what a program
said.
"""

import re

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # control sequences: colours, cursor moves, erasures
    # Strings: window titles, links. One ends within its line; of an unfinished one only the start is taken.
    r"|[\]PX^_][^\x07\x18\x1a\x1b\r\n]*+(?:\x07|\x1b\\)"
    r"|[ -/]{0,8}[0-~])"  # all other escapes
)
_CONTROLS = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]")
_BACKSPACES = re.compile(r"(\x08+)")


def plain(text: str) -> str:
    """Return the text without escape sequences, and of a line that was rewritten the last state.

    A progress bar that rewrites its line a thousand times is one line. A shorter rewriting is taken to have
    cleared the rest, as such programs see to. To go back alone clears nothing.

    The time grows as the text does; 500,000 characters take some hundredths of a second, whatever they are.
    """
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    text = _CONTROLS.sub("", text)
    if "\b" in text:
        text = "\n".join("\r".join(map(_overwritten, line.split("\r"))) for line in text.split("\n"))
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return text


def _overwritten(line: str) -> str:
    """Return a line without its backspaces: what is written behind them takes the place of what was there."""
    if "\b" not in line:
        return line
    pieces = _BACKSPACES.split(line)  # text and backspaces in turn
    kept: list[str] = []
    for at in range(0, len(pieces) - 1, 2):
        kept += pieces[at]
        back = len(pieces[at + 1])
        # The last ones clear nothing but the blanks they stand on, with which programs wipe a line.
        if at + 2 < len(pieces) - 1 or pieces[-1]:
            del kept[max(len(kept) - back, 0) :]
        else:
            begin = max(len(kept) - back, 0)
            return "".join(kept[:begin]) + "".join(kept[begin:]).rstrip(" ")
    return "".join(kept) + pieces[-1]


def _last_state(line: str) -> str:
    return next((state for state in reversed(line.split("\r")) if state), "")
