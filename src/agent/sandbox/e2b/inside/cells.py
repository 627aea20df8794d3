"""Runs a cell in the kernel and passes on in measure what it prints and displays.

Sent with every cell, and kept by the kernel from the first on, since a kernel may be started anew at any
time. The cell itself is run by IPython as ever: magics, the value of the last expression, tracebacks.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from IPython import get_ipython
from IPython.core.magics.script import ScriptMagics
from IPython.utils.process import arg_split  # type: ignore[attr-defined]
from IPython.utils.text import LSString, SList

from agent.sandbox.e2b.inside.following import drained, followed
from agent.sandbox.e2b.inside.spool import Stream, opened

Takers = dict[str, Callable[[str], object]]
"""By the name of a stream, what is called with each piece of it."""
CUT = ("text/plain", "text/markdown", "text/latex")
"""Forms of a result that are of use in part; of others, too long ones are left out."""
RESTARTED = "application/vnd.agent.restarted"
MAX_FORM_BYTES = 7_000_000
"""Of a form that is passed on whole or not at all: an image of 5 MB as base64."""
CHILDREN_S = 2.0
"""Waited at most until what child processes have printed was read."""
MAX_VALUE_BYTES = 100_000
"""Of a form that is passed on as a value of JSON rather than as its text."""
HALF_ERROR_CHARS = 4_000
SHEBANG: Any = getattr(ScriptMagics.shebang, "of_ipython", ScriptMagics.shebang)
"""IPython's own, whoever stood in for it before."""
BATCH_BYTES = 65_536
"""Written to a file at once: a cell may print a million times."""


class Cells:
    """Stands between the kernel and what its cells print and display."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.current: Cell | None = None
        self.lock = threading.RLock()
        self.publish = shell.display_pub.publish
        self.new = True
        self.begun = ""
        self.streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
        self.threads = {name: getattr(stream, "pub_thread", None) for name, stream in self.streams.items()}
        publish, show = shell.display_pub.publish, shell.displayhook.write_format_data

        def publish_bounded(data: Any, *args: Any, **more: Any) -> None:
            publish(self.bounded(data, counted=not more.get("update")), *args, **more)

        shell.display_pub.publish = publish_bounded
        shell.displayhook.write_format_data = lambda data, *args: show(self.bounded(data), *args)
        tell = shell._showtraceback
        shell._showtraceback = lambda kind, value, lines: tell(
            kind, self.short(str(value)), list(map(self.short, lines))
        )
        # What a program of the shell reads is at its end: IPython's own way gives it a terminal, and one that
        # asks for something would wait for ever.
        shell.system, shell.getoutput = self.system, self.getoutput
        script: Any = functools.wraps(SHEBANG)(lambda magics, line, code: self.script(magics, line, code))
        script.of_ipython = SHEBANG
        ScriptMagics.shebang = script  # type: ignore[method-assign]
        magics = shell.magics_manager.magics["cell"]
        if hasattr(magics.get("script"), "__self__"):
            magics["script"] = types.MethodType(script, magics["script"].__self__)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    @contextlib.contextmanager
    def hooked(self, cell: Cell) -> Iterator[None]:
        """Give the cell what is written to the standard streams in here.

        Anew for each cell, and from inside it: IPython puts a function of its own before a stream's while a
        cell runs, and then puts back what was there.
        """
        kept = []
        self.mend()
        for name in self.streams:
            stream = getattr(sys, name)
            kept.append((stream, stream.write))
            cell.open_stream(name, writer(stream))
            stream.write = functools.partial(self.write, cell, name, stream.write)
        self.shell._tee = lambda channel: contextlib.nullcontext()  # it keeps in memory all that is printed
        try:
            yield
            cell.await_children(stream for stream, _ in kept)
        finally:
            for stream, write in kept:
                stream.write = write
            vars(self.shell).pop("_tee", None)
            self.mend()

    def mend(self) -> None:
        """Put a standard stream back that a cell took away or closed: without one the kernel is of no use.

        The process's own, `sys.__stdout__`, leads nowhere; programs put it back after they redirected theirs.
        """
        nowhere = (sys.__stdout__, sys.__stderr__)
        for name, stream in self.streams.items():
            if getattr(stream, "closed", False):
                stream.pub_thread = self.threads[name]  # by which ipykernel tells
            now = getattr(sys, name, None)
            writes = callable(getattr(now, "write", None)) and not getattr(now, "closed", False)
            if not writes or now in nowhere:
                setattr(sys, name, stream)

    def write(self, cell: Cell, name: str, original: Callable[[str], int], text: str) -> int:
        """Stand in for a stream's own `write`; threads of the cell may call it at once.

        An interruption that comes at a cell's very end can leave this in place: it then stands in the way of
        the next cell's output, and lets it pass.
        """
        if not isinstance(text, str) or cell is not self.current:
            return original(text)
        with self.lock:
            cell.streams[name].take(cell.printed(text))
        return len(text)

    def system(self, line: str) -> None:
        """Run what follows a `!`."""
        line = self.shell.var_expand(line, depth=1)
        code = self.ended(["bash", "-c", line], {"stdout": lambda text: sys.stdout.write(text)})
        self.shell.user_ns["_exit_code"] = code
        if getattr(self.shell, "system_raise_on_error", False) and code:
            raise subprocess.CalledProcessError(code, line)

    def getoutput(self, line: str, split: bool = True, depth: int = 0) -> Any:
        """Run what follows a `= !`, and return what it printed."""
        said: list[str] = []
        self.ended(["bash", "-c", self.shell.var_expand(line, depth=depth + 1)], {"stdout": said.append})
        text = "".join(said)
        return SList(text.splitlines()) if split else LSString(text)

    def script(self, magics: Any, line: str, code: str) -> None:
        """Run a cell of `%%bash` and its like; one that is to run in the background is left to IPython."""
        options, command = SHEBANG.parser.parse_known_args(arg_split(line, posix=True))
        if options.bg:
            SHEBANG(magics, line, code)
            return
        variables = {"stdout": options.out, "stderr": options.err}
        self.shell.user_ns.update(dict.fromkeys(filter(None, variables.values()), ""))

        def take(name: str, text: str) -> None:
            if variables[name]:
                self.shell.user_ns[variables[name]] += text
            else:
                getattr(sys, name).write(text)

        takers: Takers = {name: functools.partial(take, name) for name in variables}
        data = (code if code.endswith("\n") else code + "\n").encode("utf-8", "replace")
        try:
            ended = self.ended(command, takers, data)
        except FileNotFoundError:
            sys.stdout.write(f"Couldn't find program: {command[0]!r}\n")
            return
        if options.raise_error and ended:
            raise subprocess.CalledProcessError(ended, data)

    def ended(self, command: list[str], takers: Takers, given: bytes = b"") -> int:
        """Run a program to its end and return its exit code; what it leaves in the background runs on.

        What that prints later goes to the cell's stream, once the cell has ended to its file alone: something
        has to read it, or it would wait, or die of a closed pipe.

        Args:
            command: the program and its arguments.
            takers: what is called with what it prints, by the name of its stream; errors go with the rest
                where they have none.
            given: what it reads.
        """
        with tempfile.TemporaryFile() as file:
            file.write(given)
            file.seek(0)
            process = subprocess.Popen(
                command,
                stdin=file if given else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if "stderr" in takers else subprocess.STDOUT,
            )
        pipes = {name: getattr(process, name) for name in takers}
        passing = {pipes[name].fileno(): decoding(take) for name, take in takers.items()}
        try:
            followed(process, passing)
        except BaseException:
            process.kill()
            process.wait()
            raise
        cell = self.current
        for name, pipe in pipes.items():
            if pipe.fileno() not in passing:
                pipe.close()
            elif cell is None:
                threading.Thread(target=drained, args=[{pipe.fileno(): bool}], daemon=True).start()
            else:
                self.keep_reading(cell, name, pipe)
        return process.returncode

    def keep_reading(self, cell: Cell, name: str, pipe: Any) -> None:
        """Take what is printed in the background for a cell's stream, in a thread."""

        def take(data: bytes) -> None:
            with self.lock:
                cell.streams[name].take(data)

        def read() -> None:
            with pipe:
                drained({pipe.fileno(): take})
            cell.going_on.remove(name)

        cell.going_on.append(name)
        threading.Thread(target=read, daemon=True).start()

    def short(self, text: str) -> str:
        """Return head and tail of what an exception says, which may quote all of its data."""
        text = sendable(text)
        if len(text) <= 2 * HALF_ERROR_CHARS:
            return text
        head, tail = text[:HALF_ERROR_CHARS], text[-HALF_ERROR_CHARS:]
        total = len(text.encode())
        left_out = total - len((head + tail).encode())
        if self.current is None:
            return f"{head}\n… {left_out} bytes left out …\n{tail}"
        return f"{head}\x1e{self.current.nonce} {total} {left_out} 0 0\x1e{tail}"

    def bounded(self, data: Any, counted: bool = True) -> Any:
        """Return a result's forms, each within measure."""
        cell = self.current
        if cell is None:
            return data
        cell.results += counted
        return {kind: cell.form(kind, value) for kind, value in data.items()}

    @contextlib.contextmanager
    def running(self, code: str, *measures: Any) -> Iterator[None]:
        """Take in what is printed and displayed in here as one cell's."""
        if self.new:
            self.new = False
            self.tell_of_an_earlier_kernel(os.path.dirname(measures[0]))
        self.note_begin(measures[0])
        cell = self.current = Cell(*measures)
        self.shell.history_manager.input_hist_parsed[-1:] = [code]  # and not the call of this program
        try:
            with self.hooked(cell):
                yield
        finally:
            self.current = None
            with self.lock:
                for name, stream in cell.streams.items():
                    # It may be one of the cell's own making, which fails.
                    with contextlib.suppress(Exception):
                        stream.finish(goes_on=name in cell.going_on)

    def tell_of_an_earlier_kernel(self, folder: str) -> None:
        """Display a form of ours if this sandbox had a kernel before this one: what that knew is lost."""
        # By name: without isolation, local sandboxes share the folder.
        mark = os.path.join(folder, ".kernel-" + os.environ.get("E2B_SANDBOX_ID", ""))
        if os.path.exists(mark):
            self.publish({RESTARTED: ""})
        else:
            with contextlib.suppress(OSError):
                os.close(opened(mark))

    def note_begin(self, base: str) -> None:
        """Leave a file that says that a cell began, until the next one does: the kernel may die in it."""
        with contextlib.suppress(OSError):
            os.unlink(self.begun)
        self.begun = f"{base}.begun"
        with contextlib.suppress(OSError):
            os.close(opened(self.begun))

    def run(self, code: str, *measures: Any) -> None:
        """Run a cell."""
        with self.running(code, *measures):
            self.shell.run_cell(code, store_history=False)

    async def run_async(self, code: str, *measures: Any) -> None:
        """Run a cell that may await something at its top level."""
        with self.running(code, *measures):
            if (transformed := self.transformed_if_async(code)) is not None:
                await self.shell.run_cell_async(code, store_history=False, transformed_cell=transformed)
                return
            # Around what may await, ipykernel lets an interruption only cancel what waits.
            kept = signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                self.shell.run_cell(code, store_history=False)
            finally:
                signal.signal(signal.SIGINT, kept)

    def transformed_if_async(self, code: str) -> str | None:
        """Return the code as plain Python if IPython would run it asynchronously."""
        try:
            transformed = str(self.shell.transform_cell(code))
        except Exception:
            return None  # run as it is, it says what is wrong
        return transformed if self.shell.should_run_async(code, transformed_cell=transformed) else None


class Cell:
    """What one cell prints and displays."""

    def __init__(self, base: str, nonce: str, pass_bytes: int, spool_from: int) -> None:
        self.base, self.nonce, self.pass_bytes, self.spool_from = base, nonce, pass_bytes, spool_from
        self.results = 0
        self.streams: dict[str, Stream] = {}
        self.going_on: list[str] = []
        """The streams that something in the background still prints to, each as often as it is read from."""
        self.trailer = f"\x1e{nonce} children\x1e".encode()
        self.held = b""
        self.reader: threading.Thread | None = None
        self.read_whole = threading.Event()

    def open_stream(self, name: str, write: Callable[[str], object]) -> None:
        """Pass on what is printed by way of `write`."""
        self.streams[name] = self.stream(
            name, self.pass_bytes, lambda data: write(data.decode("utf-8", "replace"))
        )

    def await_children(self, streams: Iterable[Any]) -> None:
        """Wait until what child processes have printed is taken in.

        They print into a pipe that a thread of ipykernel's reads at its leisure: without this, a cell can end
        before its children's last lines come. A trailer written into the pipe comes behind them.
        """
        for stream in streams:
            # Each of these may be missing, or be the cell's own: then there is nothing to wait for.
            with contextlib.suppress(AttributeError, OSError, TypeError):
                children = stream._original_stdstream_fd
                if stream.watch_fd_thread.is_alive() and os.path.samestat(
                    os.fstat(stream._fid), os.fstat(children)
                ):
                    self.reader = stream.watch_fd_thread
                    self.read_whole.clear()
                    os.write(children, self.trailer)
                    self.read_whole.wait(CHILDREN_S)
                    self.reader = None

    def printed(self, text: str) -> bytes:
        """Return what was printed, without the trailer, which may come in two pieces."""
        data = text.encode("utf-8", "backslashreplace")
        if threading.current_thread() is not self.reader:
            return data
        before, found, after = (self.held + data).partition(self.trailer)
        self.held = b""
        if found:
            self.read_whole.set()
            return before + after
        start = before.rfind(self.trailer[:1])
        if start >= 0 and self.trailer.startswith(before[start:]):
            self.held = before[start:]
            return before[:start]
        return before

    def stream(self, name: str, pass_bytes: int, write: Callable[[bytes], object]) -> Stream:
        """Return a stream with a file of its own."""
        return Stream(f"{self.base}.{name}", self.nonce, pass_bytes, self.spool_from, write, BATCH_BYTES)

    def form(self, kind: str, value: Any) -> Any:
        """Return one form of a result: whole, head and tail, or only the mark that says what was left out."""
        text = sendable(value) if isinstance(value, str) else json.dumps(value, default=str)
        whole = text.encode()
        if kind not in CUT and len(whole) <= MAX_FORM_BYTES:
            # A long one as a text: read as a value it would hold up whoever is served beside this sandbox.
            return text if isinstance(value, str) or len(whole) > MAX_VALUE_BYTES else value
        passed: list[bytes] = []
        name = f"result-{self.results}" + ("" if kind == "text/plain" else "." + kind.split("/")[-1])
        stream = self.stream(name, self.pass_bytes if kind in CUT else 0, passed.append)
        stream.take(whole)
        stream.finish()
        return b"".join(passed).decode("utf-8", "replace")


def writer(stream: Any) -> Callable[[str], int]:
    """Return what writes to a stream for the cell that runs now, from whichever thread.

    From version 7 on, ipykernel takes what a thread prints for the output of the cell that started it.
    """
    write: Callable[[str], int] = stream.write
    parent = getattr(stream, "parent_header", None)
    if not parent or not hasattr(stream, "set_thread_parent"):
        return write

    def of_this_cell(text: str) -> int:
        before = stream.set_thread_parent({"header": parent})
        try:
            return write(text)
        finally:
            stream.reset_thread_parent(before)

    return of_this_cell


def decoding(take: Callable[[str], object]) -> Callable[[bytes], object]:
    """Return what takes bytes for what takes text: a character may come in two pieces."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return lambda data: take(decoder.decode(data, not data))


def sendable(text: str) -> str:
    """Return a text without halves of characters, as a name that is no UTF-8 has: no message carries them."""
    return text.encode("utf-8", "backslashreplace").decode()


sys.modules[__name__] = types.SimpleNamespace(cells=Cells(get_ipython()))  # type: ignore[assignment]
