"""What a terminal would show in the end of a text that was written for one."""

import re

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor moves, erasures
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)"  # strings: window titles, links
    r"|[ -/]*[0-~])"  # all other escapes
)
_CONTROLS = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]")
_BACKSPACES = re.compile(r"\x08+|[^\x08]+")


def plain(text: str) -> str:
    """Return the text without escape sequences, and of a line that was rewritten the last state.

    A progress bar that rewrites its line a thousand times is one line. A shorter rewriting is taken to have
    cleared the rest, as such programs see to.
    """
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\b" in text:
        text = _erased(text)
    text = _CONTROLS.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return text


def _erased(text: str) -> str:
    """Return the text without its backspaces, and without what each takes away: a character of its line."""
    kept: list[str] = []
    for piece in _BACKSPACES.findall(text):
        if piece[0] != "\b":
            kept.extend(piece)
            continue
        for _ in piece:
            if not kept or kept[-1] == "\n":
                break
            kept.pop()
    return "".join(kept)


def _last_state(line: str) -> str:
    return next((state for state in reversed(line.split("\r")) if state), "")
