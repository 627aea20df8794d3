"""How results are worded for the model; the only place that does it.

What a tool printed stands between tags, as data. What the platform failed at starts with `error:` and is
never put between them.
"""

import base64
import functools
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from agent.errors import SandboxError, SandboxKeyError, SandboxQuotaError
from agent.sandbox.provider import CodeResult, CommandResult, FileEntry, RichResult

P = ParamSpec("P")
R = TypeVar("R")

ENDS_THE_RUN = (SandboxKeyError, SandboxQuotaError)
"""Failures a model can do nothing about: raised out of the tool, so that the run fails and says why."""

_LINES_OF_TRACEBACK = 12


def reported(
    refuse: Callable[[str], Any],
) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Make a tool report failures to the model instead of raising them.

    Args:
        refuse: turns the words into what the tool returns.
    """

    def decorate(work: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        @functools.wraps(work)
        async def reporting(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return await work(*args, **kwargs)
            except ENDS_THE_RUN:
                raise
            except (SandboxError, OSError) as exc:
                refusal: R = refuse(f"error: {exc}")
                return refusal

        return reporting

    return decorate


def clipped(text: str, max_bytes: int) -> str:
    """Return the text, or its head and tail with a note of how much is missing, in at most `max_bytes`.

    Characters are never cut in half; the note takes part of the budget.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return text
    note = f"\n… {len(data) - max_bytes} bytes left out …\n"
    half = max(max_bytes - len(note.encode()) - 16, 0) // 2
    head = data[:half].decode("utf-8", "ignore")
    tail = data[len(data) - half :].decode("utf-8", "ignore")
    left_out = len(data) - len(head.encode()) - len(tail.encode())
    return f"{head}\n… {left_out} bytes left out …\n{tail}"


def block(tag: str, text: str, max_bytes: int, attributes: str = "") -> str:
    """Return the text between tags, clipped; the closing tag starts on a line of its own."""
    body = clipped(text, max_bytes)
    return f"<{tag}{attributes}>\n{body}{'' if body.endswith(chr(10)) else chr(10)}</{tag}>"


def command_text(result: CommandResult, limit_s: float, max_bytes: int) -> str:
    """Word a command's end: exit code or timeout first, then what it printed."""
    if result.timed_out:
        first = f"timed out after {limit_s:g} s and was stopped"
    elif result.exit_code is None:
        first = "outcome unknown: the connection ended before the command did; check before you go on"
    else:
        first = f"exit_code: {result.exit_code}"
    return "\n".join([first, *_streams(result.stdout, result.stderr, max_bytes)])


def code_text(result: CodeResult, limit_s: float, max_bytes: int) -> str:
    """Word a cell's end: what it printed, what it displayed, how it failed."""
    parts = _streams(result.stdout, result.stderr, max_bytes)
    parts += [block("result", _rich_text(rich), max_bytes) for rich in result.results]
    if result.error:
        lines = result.error.traceback.splitlines()[-_LINES_OF_TRACEBACK:]
        summary = f"{result.error.name}: {result.error.value}"
        parts.append(block("error", "\n".join([summary, *lines]), max_bytes))
    if result.timed_out:
        parts.append(f"timed out after {limit_s:g} s and was interrupted")
    return "\n".join(parts) or "ok, no output"


def _streams(stdout: str, stderr: str, max_bytes: int) -> list[str]:
    streams = (("stdout", stdout), ("stderr", stderr))
    return [block(tag, text, max_bytes) for tag, text in streams if text]


def _rich_text(rich: RichResult) -> str:
    for mime in ("text/markdown", "text/plain", "text/latex", "application/json", "text/html"):
        if mime in rich.data and not _images(rich):
            return rich.data[mime]
    sizes = [f"[{mime}, {len(data) * 3 // 4 // 1024 + 1} KB]" for mime, data in _images(rich).items()]
    return " ".join([*sizes, rich.data.get("text/plain", "")]).strip() or "[" + ", ".join(rich.data) + "]"


def _images(rich: RichResult) -> dict[str, str]:
    return {mime: data for mime, data in rich.data.items() if mime.startswith("image/")}


def code_artifact(result: CodeResult) -> dict[str, Any]:
    """Return the rich results whole, for clients: a list of forms by MIME type, images as base64."""
    return {"results": [dict(rich.data) for rich in result.results]}


def file_text(path: str, data: bytes, max_bytes: int) -> str:
    """Word a file: its text with the lines shown, or its size when it is not text.

    A file over the budget is shown up to a whole line, and the heading says so: shown as if it were whole,
    it would be written back without its end.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        sample = base64.b64encode(data[:24]).decode()
        return f"{path} is binary: {len(data)} bytes, starting (base64) {sample}"
    lines = text.splitlines(keepends=True)
    shown = _whole_lines(lines, max_bytes)
    heading = f' path="{path}" lines="{min(shown, 1)}-{shown} of {len(lines)}"'
    if shown < len(lines):
        heading += f' note="cut: the file has {len(data)} bytes; see the rest with sed -n in a command"'
    return block("file", "".join(lines[:shown]), max_bytes, heading)


def _whole_lines(lines: list[str], max_bytes: int) -> int:
    room = max_bytes
    for count, line in enumerate(lines):
        room -= len(line.encode())
        if room < 0:
            return count
    return len(lines)


def listing_text(entries: list[tuple[str, FileEntry]]) -> str:
    """Word a folder: a name a line, folders with a trailing slash."""
    names = sorted(name + ("/" if entry.kind == "folder" else "") for name, entry in entries)
    return "\n".join(names) or "(the folder is empty)"
