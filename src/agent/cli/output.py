"""The standard streams: in any encoding, and what becomes of a command when they cannot be written."""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

import typer

from agent.cli import exits
from agent.cli.visible import VisibleStream


class OutputError(OSError):
    """The standard output takes no more: a full disk, or a reader that has left.

    No `BrokenPipeError`, which rich and click would end the process for, with exit code 1.
    """


class _Output(io.FileIO):
    """The standard output's file; whatever fails there is told from the errors of other files."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as exc:
            raise OutputError(exc.errno, exc.strerror) from exc


def watch() -> None:
    """Have the standard output raise `OutputError`, and take characters that its encoding has not.

    Those become `?`. One that was replaced, as in tests, is left alone.
    """
    stdout = sys.stdout
    if stdout is None or stdout is not sys.__stdout__ or not isinstance(stdout, io.TextIOWrapper):
        return
    stdout.flush()
    file = _Output(stdout.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=stdout.encoding,
        errors="replace",
        line_buffering=stdout.line_buffering,
        write_through=stdout.write_through,
    )


@contextmanager
def watched() -> Iterator[None]:
    """Watch the standard output within the block, which ends the process; input in any encoding is taken."""
    watch()
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")
    try:
        yield
    except SystemExit as exc:
        try:
            flush()
        except OutputError as failed:
            sys.exit(give_up(failed))
        raise exc
    except OutputError as exc:
        sys.exit(give_up(exc))
    except OSError as exc:  # of the standard error, as a rule; the interpreter would end with 1: "failed"
        with contextlib.suppress(OSError):
            typer.echo(f"The output cannot be written: {exc.strerror}.", err=True)
        sys.exit(exits.PLATFORM)


def typed(text: str) -> str:
    """Return what was typed, given or piped as text: bytes that its encoding has not are read as UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@contextmanager
def visible_errors() -> Iterator[None]:
    """Make all visible that is written on the standard error within the block.

    Tracebacks, warnings and logs get there by themselves, and repeat what servers and models say.
    """
    before = sys.stderr
    sys.stderr = cast("TextIO", VisibleStream(before))
    try:
        yield
    finally:
        sys.stderr = before


def error_terminal() -> TextIO:
    """Return the standard error as it is, for a screen: that makes texts visible itself, and has colours."""
    stream: Any = sys.stderr
    return cast("TextIO", stream.stream) if isinstance(stream, VisibleStream) else stream


def flush() -> None:
    """Write what is left in buffers.

    Raises:
        OutputError: it cannot be written.
    """
    if sys.stdout is not None:
        sys.stdout.flush()


def give_up(exc: OutputError) -> int:
    """Write nothing more, say why unless the reader has left, and return the exit code."""
    # What is still in buffers would be tried again when the process ends.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    if exc.errno == errno.EPIPE:
        return exits.READER_LEFT
    with contextlib.suppress(OSError):  # the standard error may be the same file
        typer.echo(f"The output cannot be written: {exc.strerror}.", err=True)
    return exits.PLATFORM
