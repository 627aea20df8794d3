"""How results are worded for the model; with `file_results.py` the only place that does it.

What a tool printed stands between tags, as data. What is ours to say about it stands outside them, and what
the platform failed at starts with `error:`. No text can close its own tag: where it holds the closing tag,
the tag is given a number that makes it another.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.sandbox.output import Excerpt, joined, parts_of, size_of
from agent.sandbox.provider import BackgroundResult, CodeResult, CommandResult, RichResult, Spooled
from agent.tools.budget import clipped, shares
from agent.tools.terminal import plain

_LINES_OF_TRACEBACK = 24
_LOOKED_AT = 524_288
"""Characters of all texts of a message, before colours and progress bars are taken out."""
_MAX_TAGS = 100
_MAX_HTML_CHARS = 2_048
_LONG_S = 1.0
"""From here on the time a call took is worth telling."""

NO_INPUT = (
    "[nothing can be typed into what runs here: pass values as arguments, in a file or through a pipe, and "
    "use options such as --yes]"
)
RESTARTED = (
    "[the Python kernel was started anew: variables, imports and definitions of earlier calls are lost; "
    "files are still there]"
)
DIED = {
    "in the cell": "[the kernel died while this cell ran: a part of it may have taken effect]",
    "before the cell": "[this cell did not run: the kernel died before it began; it can be run again]",
    "unknown": "[the kernel died; whether this cell began is not known: look before you run it again]",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One text of a message, which is put between tags."""

    tag: str
    text: str
    spooled: Spooled | None = None
    """Where the whole is, if the sandbox keeps it."""
    attributes: str = ""


def block(tag: str, text: str, max_bytes: int, attributes: str = "") -> str:
    """Return the text between tags, clipped; the closing tag starts on a line of its own."""
    body = clipped(text, max_bytes)
    name = _unforgeable(tag, body)
    return f"<{name}{attributes}>\n{body}{'' if body.endswith(chr(10)) else chr(10)}</{name}>"


def _unforgeable(tag: str, body: str) -> str:
    """Return the tag, or one made from it whose end the body does not hold."""
    name = tag
    for number in range(2, _MAX_TAGS):
        if f"</{name}" not in body:
            return name
        name = f"{tag}-{number}"
    # Whoever guesses so many is at it on purpose.
    return f"{tag}-{secrets.token_hex(8)}"


def blocks(parts: Sequence[Part], max_bytes: int) -> list[str]:
    """Return the parts between tags, within one budget, each cut one followed by where the whole is."""
    looked_at = max(_LOOKED_AT // max(len(parts), 1), 4 * max_bytes)
    texts = [_within(part.text, looked_at).mapped(plain) for part in parts]
    frames = [2 * len(part.tag) + len(part.attributes) + 14 + len(_whereabouts(part)) for part in parts]
    rooms = shares([size_of(text) for text in texts], max(max_bytes - sum(frames), 0))
    said = []
    for part, text, room in zip(parts, texts, rooms, strict=True):
        if text or not part.spooled:
            said.append(block(part.tag, text, room, part.attributes))
        cut = size_of(text) > room or text.parts[1:] or (part.spooled and part.spooled.left_out)
        if cut or (part.spooled and part.spooled.goes_on):
            said.append(_whereabouts(part))
    return said


def _within(text: str, max_chars: int) -> Excerpt:
    """Return head and tail of a text that is far longer than is shown: each character is looked at."""
    whole = Excerpt(*parts_of(text))
    if len(whole) <= max_chars:
        return whole
    return whole.without(max_chars // 2, len(whole) - max_chars // 2)


def _whereabouts(part: Part) -> str:
    file = part.spooled
    if file is None:
        return f"[{part.tag} was cut; the rest was not kept]"
    if file.goes_on:
        return f"[what still runs in the background goes on printing to {file.path}]"
    return f"[{part.tag}: {file.total_bytes} bytes; {_kept_in(file)}, which read_file shows by pages]"


def _kept_in(file: Spooled) -> str:
    kept = "the whole" if file.kept_bytes >= file.total_bytes else f"the first {file.kept_bytes} bytes"
    return f"{kept} in {file.path}"


def command_text(result: CommandResult, limit_s: float, max_bytes: int) -> str:
    """Word a command's end: exit code or timeout first, then what it printed."""
    if result.timed_out:
        first = f"timed out after {limit_s:g} s; it and all it started were stopped"
    elif result.exit_code is None:
        first = (
            "outcome unknown: the connection ended before the command did. It is neither a success nor a "
            "failure, and nothing of it still runs; look at what it changed before you go on"
        )
    else:
        first = f"exit_code: {result.exit_code}{_meaning(result.exit_code)}{_took(result.duration_s)}"
    said = [first, *_streams(result.stdout, result.stderr, result.spooled, max_bytes - size_of(first))]
    if "EOFError" in result.stderr:
        said.append(NO_INPUT)
    return "\n".join(said)


def background_text(result: BackgroundResult, max_bytes: int) -> str:
    """Word how a command in the background is doing, then what is new of what it printed."""
    if result.running:
        first = f"running, for {result.duration_s:.0f} s so far"
    elif result.stopped:
        first = "stopped, with all it started"
    elif result.exit_code is None:
        first = "ended, nobody saw how: its outcome is unknown"
    else:
        first = f"exit_code: {result.exit_code}{_meaning(result.exit_code)}{_took(result.duration_s)}"
    said = _streams(result.stdout, result.stderr, result.spooled, max_bytes - size_of(first))
    return "\n".join([first, *(said or ["[nothing new was printed]"])])


def started_text(command_id: str) -> str:
    """Word that a command was started in the background."""
    return f"started in the background; its command_id is {command_id}"


def _meaning(exit_code: int) -> str:
    if exit_code == 137:
        return " (killed; perhaps the memory did not suffice)"
    return f" (ended by signal {exit_code - 128})" if 128 < exit_code < 160 else ""


def _took(duration_s: float) -> str:
    return f" ({duration_s:.1f} s)" if duration_s >= _LONG_S else ""


def code_text(result: CodeResult, limit_s: float, max_bytes: int) -> str:
    """Word a cell's end: what it printed, what it displayed, how it failed."""
    parts = _stream_parts(result.stdout, result.stderr, result.spooled)
    parts += [
        Part("result", _rich_text(rich, number, result.spooled), result.spooled.get(f"result-{number}"))
        for number, rich in enumerate(result.results, 1)
    ]
    if result.error:
        error = result.error
        summary = [error.name, ": ", error.value, "\n", _traceback(error.traceback)]
        parts.append(Part("error", joined(summary)))
    after = []
    if result.timed_out:
        after.append(
            f"timed out after {limit_s:g} s and was interrupted; variables are kept unless you are told"
        )
    if result.error and result.error.name in {"StdinNotImplementedError", "EOFError"}:
        after.append(NO_INPUT)
    before = [RESTARTED] if result.restarted else []
    before += [DIED[result.died]] if result.died else []
    room = max_bytes - sum(map(size_of, [*before, *after]))
    return "\n".join([*before, *blocks(parts, room), *after]) or "ok, no output"


def _traceback(text: str) -> Excerpt:
    """Return a traceback; of a long one the start, where the cell is, and the end."""
    whole = Excerpt(*parts_of(text)).mapped(plain)
    ends = [found.end() for found in re.finditer("\n", whole)]
    half = _LINES_OF_TRACEBACK // 2
    if len(ends) < _LINES_OF_TRACEBACK:
        return whole
    return whole.without(ends[half - 1] - 1, ends[-half])


def _streams(stdout: str, stderr: str, spooled: Mapping[str, Spooled], max_bytes: int) -> list[str]:
    return blocks(_stream_parts(stdout, stderr, spooled), max_bytes)


def _stream_parts(stdout: str, stderr: str, spooled: Mapping[str, Spooled]) -> list[Part]:
    streams = (("stdout", stdout), ("stderr", stderr))
    return [Part(tag, text, spooled.get(tag)) for tag, text in streams if text or tag in spooled]


def _rich_text(rich: RichResult, number: int, spooled: Mapping[str, Spooled]) -> str:
    """Return what a model reads of a result: a text, or what else it is and how large."""
    kept = {mime: data for mime, data in rich.data.items() if _is_there(data)}
    lost = [
        _too_long(mime, spooled.get(f"result-{number}.{mime.split('/')[-1]}"))
        for mime in rich.data
        if mime not in kept
    ]
    images = [mime for mime in kept if mime.startswith("image/")]
    text = kept.get("text/plain", "") if images else _shown_form(kept)
    others = [] if text and not images else [_sized(mime, kept[mime]) for mime in images or kept]
    ours = " ".join([*others, *lost])
    if images:
        return joined([ours, " ", text] if text else [ours])
    return joined([text, "\n", ours] if text and ours else [text or ours])


def _shown_form(forms: Mapping[str, str]) -> str:
    for mime in ("text/markdown", "text/plain", "text/latex", "application/json", "text/html"):
        # A long page is a chart or a map with all its program, which says a model nothing.
        if mime in forms and (mime != "text/html" or len(forms[mime]) <= _MAX_HTML_CHARS):
            return forms[mime]
    return ""


def _sized(mime: str, data: str) -> str:
    # Images and such come as base64.
    size = len(data) * 3 // 4 if mime.startswith(("image/", "application/pdf")) else len(data)
    return f"[{mime}, {size // 1024 + 1} KB]"


def _is_there(data: str) -> bool:
    """Whether a form is there, at least in part: of some, a part is of no use to anybody."""
    return not isinstance(data, Excerpt) or any(isinstance(part, str) for part in data.parts)


def _too_long(mime: str, file: Spooled | None) -> str:
    where = f"; {_kept_in(file)}" if file else ""
    size = f", {file.total_bytes} bytes" if file else ""
    return f"[{mime}{size}: too long to pass on{where}]"


def code_artifact(result: CodeResult) -> dict[str, Any]:
    """Return the rich results whole, for clients: a list of forms by MIME type, images as base64."""
    return {
        "results": [
            {mime: data for mime, data in rich.data.items() if _is_there(data)} for rich in result.results
        ]
    }
