"""Where the command line writes: a terminal with colours, or plain lines without one."""

import contextlib
import os
import select
import sys
import termios
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.table import Column
from rich.text import Text as PlainText

from agent.cli import pictures
from agent.cli.output import typed
from agent.cli.visible import Text, VisibleConsole, cut, one_line, visible

_LONGEST_MESSAGE = 60  # beside a spinner
_LONGEST_DETAIL = 500
_MOST_ERROR_LINES = 40
_LONGEST_ERROR = 4000  # characters
_PLAIN_WIDTH = 110  # for tables in logs; single lines are never broken there


class EndOfInput(KeyboardInterrupt):
    """There is no more input (Ctrl-D): whoever was asked is gone."""


class Screen:
    """The standard output, and the questions asked on it.

    Without a terminal there are no prompts, no spinners and no colours; each line is flushed as it is
    written. All text is made visible, see `agent.cli.visible`: it may come from anywhere.

    Args:
        console: default one on the standard output.
        ask: whether a human can be asked; default when input and output both are a terminal.
    """

    def __init__(self, console: Console | None = None, *, ask: bool | None = None) -> None:
        self.console = console or VisibleConsole()
        self.is_terminal = self.console.is_terminal
        self.can_ask = (self.is_terminal and sys.stdin.isatty()) if ask is None else ask
        self._asked_for_pictures = False
        self._pictures: pictures.Protocol | None = None
        if not self.is_terminal:
            self.console.width = _PLAIN_WIDTH
        elif (real := _columns(self.console)) and real < self.console.width:
            self.console.width = real  # COLUMNS says more: each spinner would leave a line behind
        # Where colours alone are forced, as in a log, nothing takes a spinner off again.
        self.can_redraw = self.is_terminal and self.console.file.isatty()

    def line(self, text: str | Text = "", style: str = "") -> None:
        """Write one line; text is never read as markup, and a line feed in it begins no other."""
        shown: PlainText = Text(text.replace("\n", "␊"), style) if isinstance(text, str) else text
        if self.is_terminal and shown.cell_len > self.console.width:
            shown = _hanging(shown, self.console)
        self.console.print(shown, soft_wrap=not self.is_terminal)

    def indented(self, text: str, margin: str, style: str = "") -> None:
        """Write lines with a margin before each, so that none looks like a line of ours."""
        for line in text.removesuffix("\n").split("\n"):
            self.line(f"{margin}{line}", style)

    def said(self, who: str, text: str) -> None:
        """Write what somebody said; its lines stand beneath each other, beside the name."""
        first, *others = text.removesuffix("\n").split("\n")
        self.line(f"{who}{first}")
        for line in others:
            self.line(f"{' ' * len(who)}{line}")

    def show(self, renderable: RenderableType) -> None:
        """Write a table, a rule or another rich object."""
        self.console.print(renderable)

    def heading(self, text: str) -> None:
        """Start a section."""
        self.line()
        self.line(text, "bold")

    def error(self, text: str) -> None:
        """Write a problem; what follows its first line stands further in, and a long text is cut."""
        first, *others = cut(text, _LONGEST_ERROR).split("\n")
        self.line(first, "red")
        for line in others[:_MOST_ERROR_LINES]:
            self.line(f"  {line}", "red")
        if len(others) > _MOST_ERROR_LINES:
            self.line(f"  … {len(others) - _MOST_ERROR_LINES} more lines", "red")

    def ask(self, question: str) -> str:
        """Ask for one line, and return it stripped.

        Raises:
            KeyboardInterrupt: Ctrl-C, or as `EndOfInput` the end of the input.
        """
        _forget_typed_ahead()
        self.console.print(Text(question.replace("\n", "␊"), "bold"), end="")
        _await_line()
        try:
            return typed(self.console.input()).strip()
        except EOFError as exc:
            self.line()
            raise EndOfInput from exc

    def write(self, text: str, style: str = "") -> None:
        """Write a piece of a line, or of several."""
        self.console.print(Text(text, style), end="", soft_wrap=True)

    def raw(self, text: str) -> None:
        """Write a text for a program that reads it: as it is, in UTF-8, unless a terminal reads it.

        A lone half of a surrogate pair, which no encoding takes, is written as `?`.
        """
        data, file = text.encode("utf-8", "replace"), self.console.file
        if self.is_terminal or not hasattr(file, "buffer"):
            file.write(visible(text) if self.is_terminal else data.decode())
            return
        file.flush()  # what was written before comes before
        file.buffer.write(data)

    def picture(self, data: bytes) -> None:
        """Draw a picture, if the terminal can; it is asked once, before the first one."""
        if not self.can_ask or self.console.is_dumb_terminal:
            return
        if not self._asked_for_pictures:
            self._asked_for_pictures = True
            with contextlib.suppress(OSError):
                self._pictures = pictures.spoken(sys.stdin.fileno())
        if self._pictures is not None:
            cell = pictures.cell_width(sys.stdin.fileno())
            # Composed there of numbers and base64 alone.
            drawn = pictures.drawn(data, self._pictures, columns=self.console.width - 4, cell=cell)
            self.console.file.write(drawn)
            self.console.file.flush()

    def busy(self, message: str) -> "Busy":
        """Show that something is going on while the block runs; says it once without a terminal."""
        return Busy(self, message)


class Busy:
    """A spinner with a message, and a bar once the number of steps is known; gone when it ends."""

    def __init__(self, screen: Screen, message: str) -> None:
        self._screen = screen
        self._message = message
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._unechoed = False

    def __enter__(self) -> Self:
        if self._screen.can_redraw:
            self.go_on(self._message)
        elif self._message:
            self._screen.line(f"{self._message} …")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def go_on(self, message: str) -> None:
        """Put it on the screen, again if it was taken off; silent without a terminal."""
        if not self._screen.can_redraw:
            return
        if self._progress is None:
            self._progress = Progress(
                SpinnerColumn("dots" if self._screen.console.encoding.startswith("utf") else "line"),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=20),
                TextColumn(
                    "{task.fields[detail]}",
                    style="dim",
                    markup=False,
                    table_column=Column(no_wrap=True, ratio=1),
                ),
                console=self._screen.console,
                expand=True,
                transient=True,
            )
            self._task = self._progress.add_task(_short(message), total=None, detail="")
            self._unechoed = _set_echo(on=False)  # Enter would push the line up, out of reach
            self._progress.start()
        self.update(message)

    def stop(self) -> None:
        """Take it off the screen, until `go_on`."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
            if self._unechoed:
                _set_echo(on=True)

    def update(self, message: str, done: int | None = None, total: int | None = None) -> None:
        """Change the message, and the bar when there is something to count; silent without a terminal."""
        if self._progress is not None and self._task is not None:
            completed = 0 if done is None else done
            self._progress.update(
                self._task, description=_short(message), total=total, completed=completed, detail=""
            )

    def detail(self, text: str) -> None:
        """Show a passing detail beside the message, such as the last line of output."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, detail=one_line(text, _LONGEST_DETAIL))


def _columns(console: Console) -> int:
    """Return how wide the terminal is; 0 where that is unknown, or there is none."""
    try:
        return os.get_terminal_size(console.file.fileno()).columns
    except (OSError, ValueError):
        return 0


def _hanging(text: PlainText, console: Console) -> PlainText:
    """Break a line by words; what follows keeps its margin and stands a little further in."""
    margin = min(len(text.plain) - len(text.plain.lstrip(" ")), console.width // 2)
    lines = text[margin:].wrap(console, max(10, console.width - margin - 2), overflow="fold")
    for line in lines:
        line.rstrip()
    return Text(f"\n{' ' * (margin + 2)}").join([Text(" " * margin) + lines[0], *lines[1:]])


def _short(message: str) -> str:
    short = message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"
    return one_line(short)


def _set_echo(*, on: bool) -> bool:
    """Have the terminal show what is typed, or not; return whether that changed anything."""
    with contextlib.suppress(OSError, ValueError, termios.error):
        terminal = sys.stdin.fileno()
        modes = termios.tcgetattr(terminal)
        # A job in the background would be stopped for it.
        if bool(modes[3] & termios.ECHO) != on and os.tcgetpgrp(terminal) == os.getpgrp():
            modes[3] ^= termios.ECHO
            termios.tcsetattr(terminal, termios.TCSANOW, modes)
            return True
    return False


def _await_line() -> None:
    """Return once there is something to read.

    In short turns: a Ctrl-C that comes in the instant before a read would be noticed at the next line only.
    """
    with contextlib.suppress(OSError, ValueError):
        while not select.select([sys.stdin], [], [], 0.25)[0]:
            pass


def _forget_typed_ahead() -> None:
    """Drop what was typed before a question was shown: it cannot be meant as the answer."""
    with contextlib.suppress(OSError, ValueError, termios.error):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
