"""Foreign text made visible: the one way to the terminal for what models, servers and folders say.

A terminal obeys what it is sent. An escape sequence moves the cursor over what stands there, rewrites the
clipboard or the window's title; a carriage return begins the line anew; marks of writing direction turn what
follows around; letters without width hide. A human who approves `ls -la` has then read something else than
what is carried out. So every such character is shown as a sign of its own, and nothing of it is obeyed:

- control characters as their pictures, ␛ for escape, ␍ for carriage return, ␡ for delete;
- all others by their code point, `<U+202E>`.

Line feeds and tabs stay where a text may have lines; `one_line` shows them, too. Letters that merely look
alike stay as they are.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text as _Text

_LONGEST_FIELD = 200  # characters of a name, an id, a status: more would push the rest off the screen

# Control, format, surrogate, line and paragraph separator; and what this Python does not know, which may be
# one of these by now, but for where emoji and ideographs are added.
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Cs", "Zl", "Zp"})
_GROWING = re.compile("[\U0001f000-\U0001faff\U00020000-\U0003fffd]")
# Letters and marks that draw nothing (Unicode's Default_Ignorable_Code_Point and two more), and a blank that
# is a symbol.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U00016fe4\U0001d159\U000e0000-\U000e0fff]"
)
_SYMBOL = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Each is as it stands in emoji, where it is part of one picture: ⚠️, 1️⃣, 👩‍💻. Elsewhere it hides.
_PART_OF_EMOJI = (
    f"(?<=[{_SYMBOL}])\ufe0f|(?<=[0-9#*])\ufe0f(?=\u20e3)|"
    f"(?:(?<=[{_SYMBOL}])|(?<=[{_SYMBOL}]\ufe0f))\u200d(?=[{_SYMBOL}])"
)
# Nothing hides among these; named so that long texts are quick.
_HARMLESS = "\t\n\x20-\x7e\xa0-\xac\xae-\u02ff\u0370-\u0482\u048a-\u0590\u3400-\u9fff\uac00-\ud7a3"
_SUSPECT = re.compile(f"(?P<emoji>{_PART_OF_EMOJI})|[^{_HARMLESS}]")
_MARKS = frozenset({"Mn", "Me"})
_MOST_MARKS = 5  # on one letter, more than scripts need: a pile grows over the lines above and below
_PICTURES = 0x2400
# Neither black nor concealed: that would hide.
_SGR = "(?:[0-4]|22|39|3[1-7]|9[1-7])"
_COLOUR = re.compile(rf"(\x1b\[(?:{_SGR}(?:;{_SGR})*)?m)")
_LINE_END = "\n"


def visible(text: str) -> str:
    """Return a text in which nothing moves, hides or turns; line feeds and tabs stay.

    Text that was made visible is not changed again.
    """
    if text.isascii() and text.isprintable():
        return text
    return _SUSPECT.sub(_shown, text)


def one_line(text: str, most: int = _LONGEST_FIELD) -> str:
    """Return a text as a part of one line: line feeds and tabs are made visible, too, a long one is cut.

    Args:
        text: a name, an id, a status and such.
        most: how many characters to show at most; the cut says how many there are.
    """
    return visible(cut(text, most)).replace("\n", "␊").replace("\t", "␉")


def cut(text: str, most: int) -> str:
    """Return of a text that is longer than `most` characters its beginning, its length and its end."""
    if len(text) <= most:
        return text
    end = most // 3
    return f"{text[: most - end]} … {len(text):,} characters … {text[-end:]}"


def _shown(found: re.Match[str]) -> str:
    each = found[0]
    if found["emoji"]:
        return each
    if each < "\x20":
        return chr(_PICTURES + ord(each))
    if each == "\x7f":
        return "␡"
    category = unicodedata.category(each)
    if category == "Cn" and _GROWING.fullmatch(each):
        return each
    if category in _HIDDEN or _BLANK.fullmatch(each) or (category in _MARKS and _is_piled(found)):
        return f"<U+{ord(each):04X}>"
    return each


def _is_piled(mark: re.Match[str]) -> bool:
    before = mark.string[max(0, mark.start() - _MOST_MARKS) : mark.start()]
    return len(before) == _MOST_MARKS and all(unicodedata.category(each) in _MARKS for each in before)


def visible_log(line: str) -> str:
    """Return a line of a server's log, made visible but for its colours, which end with it."""
    pieces = _COLOUR.split(line)  # text and colours in turn
    shown = "".join(piece if number % 2 else visible(piece) for number, piece in enumerate(pieces))
    return f"{shown.removesuffix(_LINE_END)}\x1b[0m{_LINE_END}" if len(pieces) > 1 else shown


class Text(_Text):
    """Text with styles, made visible as it comes in; rich's own drops some control characters silently."""

    def __init__(self, text: str = "", style: str = "", **options: Any) -> None:
        super().__init__(visible(text), style, **options)

    @classmethod
    def assemble(cls, *parts: Any, **options: Any) -> "Text":
        """Return one text of several, each a text, a string, or a string with its style."""
        whole = cls(**options)
        for part in parts:
            if isinstance(part, tuple):
                whole.append(*part)
            else:
                whole.append(part)
        return whole

    def append(self, text: _Text | str, style: Any = None) -> "Text":
        """Add text, with a style of its own."""
        super().append(visible(text) if isinstance(text, str) else text, style)
        return self


def code(text: str, language: str) -> RenderableType:
    """Return a program's text with its colours, four columns in."""
    shown = Syntax(visible(text), language, theme="ansi_dark", background_color="default", word_wrap=True)
    return Padding(shown, (0, 0, 0, 4))


class VisibleConsole(Console):
    """A console that makes all text visible that it draws, whatever it came in, and reads no markup.

    The escape sequences of rich itself are no text: styles and cursor moves pass.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> _Text:
        """Return a plain string, such as a table's cell, as text."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Draw something; the last wall behind whoever forgot to make its text visible."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)


class VisibleStream:
    """A stream of text, such as the standard error, on which all that is written is made visible.

    Whatever writes there by itself passes through: tracebacks, warnings, logs.

    Args:
        stream: where to write.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text; returns how much of it was taken, which is all."""
        self.stream.write(visible(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
