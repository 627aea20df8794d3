"""How results of the file tools are worded for the model."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent.tools.budget import clipped
from agent.tools.results import block

Answer = Mapping[str, Any]
"""What an operation of `sandbox/e2b/inside/files.py` answers."""


def named(path: str) -> str:
    """Return a path as it is shown: in quotes, with escapes, where it could be mistaken for another."""
    odd = path != path.strip() or any(not char.isprintable() for char in path) or path[:1] in {'"', ""}
    return json.dumps(path) if odd else path


def _attribute(path: str) -> str:
    return json.dumps(path, ensure_ascii=False)


def file_text(path: str, answer: Answer, max_bytes: int) -> str:
    """Word what was read of a file: its text with the lines shown, or what else it is.

    A file that is not shown to its end says so in its heading: shown as if it were whole, it would be written
    back without its end.
    """
    kind, size_bytes = answer["kind"], answer["size"]
    if kind == "image":
        return f"{named(path)} is an image: {answer['mime']}, {size_bytes} bytes"
    if kind == "binary":
        return f"{named(path)} is binary: {size_bytes} bytes, starting (base64) {answer['data']}"
    heading = f" path={_attribute(path)}"
    if kind == "bytes":
        heading += f' bytes="{answer["start"]}-{answer["end"]} of {size_bytes}"'
        if answer["start"] >= size_bytes > 0:
            heading += f' note="nothing is there: the file has {size_bytes} bytes"'
        elif answer["end"] < size_bytes:
            heading += f' note="go on with start_byte={answer["end"]}"'
    else:
        heading += f' lines="{answer["first"]}-{answer["last"]} of {answer["total"]}"{_note(answer)}'
    if encoding := answer.get("encoding"):
        heading += f" encoding={_attribute(encoding)}"
    return block("file", answer["text"], max_bytes, heading)


def _note(answer: Answer) -> str:
    if answer["total"] and not answer["text"]:
        return f' note="nothing is there: the file has {answer["total"]} lines"'
    if answer["cut"]:
        return f' note="this line is longer than can be shown: go on with start_byte={answer["end"]}"'
    if answer["last"] < answer["total"]:
        return f' note="cut: the file has {answer["size"]} bytes; go on with start_line={answer["last"] + 1}"'
    return ""


def listing_text(answer: Answer, max_bytes: int) -> str:
    """Word a folder: a name a line, folders with a trailing slash, links marked."""
    if not answer["total"]:
        return "(the folder is empty)"
    return _paths(answer, max_bytes, "entries")


def found_text(answer: Answer, max_bytes: int) -> str:
    """Word the paths a pattern matched."""
    said = _paths(answer, max_bytes, "matches") if answer["total"] else "(nothing matches)"
    return "\n".join([said, *_unreadable(answer)])


def _paths(answer: Answer, max_bytes: int, what: str) -> str:
    lines = [_entry(entry) for entry in answer["entries"]]
    shown = _that_fit(lines, max_bytes)
    said = [block("paths", "\n".join(shown), max_bytes)]
    if len(shown) < answer["total"]:
        said.append(f"[cut: {len(shown)} of {answer['total']} {what}; narrow it down]")
    return "\n".join(said)


def _entry(entry: Answer) -> str:
    return named(entry["path"]) + {"folder": "/", "link": "@"}.get(entry["kind"], "")


def _that_fit(lines: Sequence[str], max_bytes: int) -> list[str]:
    room, shown = max_bytes, []
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        shown.append(line)
    return shown


def matches_text(path: str, answer: Answer, max_bytes: int) -> str:
    """Word the lines a search found: path, number, text."""
    lines = [
        f"{named(match['path'] or path)}:{match['line']}: {match['text']}" for match in answer["matches"]
    ]
    shown = _that_fit(lines, max_bytes)
    searched = f"{answer['searched']} files searched"
    if not answer["total"]:
        said = [f"(no line matches; {searched})"]
    else:
        said = [block("matches", "\n".join(shown), max_bytes)]
    if len(shown) < answer["total"]:
        said.append(f"[cut: {len(shown)} of {answer['total']} matching lines; narrow it down]")
    if answer["binary"]:
        said.append(f"[{answer['binary']} files that are not text were left out]")
    return "\n".join([*said, *_unreadable(answer)])


def _unreadable(answer: Answer) -> list[str]:
    names = ", ".join(named(name) for name in answer["unreadable"])
    return [f"[could not be read: {clipped(names, 500)}]"] if names else []


def edit_text(path: str, answer: Answer, count: int) -> str:
    """Word an edit: where it replaced.

    Raises:
        OSError: it did not, and why.
    """
    found, lines = answer["found"], ", ".join(map(str, answer["lines"]))
    if found == count:
        said = f"Replaced {count} in {named(path)}, line{'s' if count > 1 else ''} {lines}."
        return said + _kept(answer.get("kept"), answer.get("encoding"))
    if not found:
        hint = "; its lines end with \\r\\n" if answer["crlf"] else "; read the file and copy it exactly"
        raise OSError(f"the old text does not occur in {named(path)}{hint}. Nothing was changed.")
    raise OSError(
        f"the old text occurs {found} times in {named(path)} (lines {lines}), not {count}. Nothing "
        f"was changed: give more of its surroundings, or count={found} to replace them all."
    )


def written_text(path: str, answer: Answer) -> str:
    """Word that a file was written."""
    said = f"Wrote {answer['size']} bytes to {named(path)}."
    return said + _kept(answer.get("crlf"), answer.get("encoding"))


def _kept(crlf: Any, encoding: Any) -> str:
    """Word what of a file was kept that the text did not say."""
    return (" Its lines end with \\r\\n, as before." if crlf else "") + (
        f" Its encoding is {encoding}." if encoding else ""
    )


def deleted_text(path: str, answer: Answer) -> str:
    """Word that something was deleted."""
    return f"Deleted the {answer['kind']} {named(path)}."
