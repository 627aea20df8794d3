"""JSON that clients send: an object, and in it fields of the kinds that are expected.

What an operation does not know is left out, as E2B's daemon does; what it knows and cannot be, is refused.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from e2b_local.headers import whole_number

Message = dict[str, Any]
Kind = Callable[[str, Any], Any]
"""Takes a field's name and value; returns the value, or raises MessageError."""

# The first or second half of a character beyond 16 bits, which is none without the other.
_MAYBE_HALF = re.compile(rb"\\u[dD]")
_MOST_32 = 2**32 - 1
_MOST_16 = 2**16 - 1


class MessageError(ValueError):
    """What was sent is not what is expected; the message says which field, and what it must be."""


def parsed(raw: bytes) -> Message:
    """Return the object that a body holds.

    Raises:
        MessageError: it is no JSON object, or holds what no answer could repeat (NaN, half of a character).
    """
    try:
        body = json.loads(raw.decode(), parse_constant=_no_number)
        if _MAYBE_HALF.search(raw):
            json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as exc:  # one of them is for what is nested too deeply
        raise MessageError("the body is not JSON") from exc
    if not isinstance(body, dict):
        raise MessageError("the body is not a JSON object")
    return body


def text(name: str, value: Any) -> str:
    """Take what a path, a name or a variable may be."""
    if not isinstance(value, str) or "\0" in value:
        raise MessageError(f"{name} must be a text without NUL")
    return value


def flag(name: str, value: Any) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        raise MessageError(f"{name} must be true or false")
    return value


def number(most: int) -> Kind:
    """Return a kind that takes a whole number from 0 on, also as text: protocol buffers have both in JSON."""

    def take(name: str, value: Any) -> int:
        given = whole_number(value) if isinstance(value, str) else value
        if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= most:
            raise MessageError(f"{name} must be a whole number from 0 to {most}")
        return given

    return take


def texts(name: str, value: Any) -> list[str]:
    """Take a list of texts."""
    if not isinstance(value, list):
        raise MessageError(f"{name} must be a list")
    return [text(f"each of {name}", each) for each in value]


def pairs(name: str, value: Any) -> dict[str, str]:
    """Take an object of texts."""
    if not isinstance(value, dict):
        raise MessageError(f"{name} is not an object of strings")
    return {text(f"each name of {name}", key): text(f"{name}.{key}", each) for key, each in value.items()}


def variables(name: str, value: Any) -> dict[str, str]:
    """Take variables that a program can be started with."""
    if wrong := [key for key in pairs(name, value) if not key or "=" in key]:
        raise MessageError(f"{name}: {wrong[0]!r} is no name of a variable")
    return pairs(name, value)


def data(name: str, value: Any) -> str:
    """Take bytes in base64."""
    try:
        base64.b64decode(text(name, value))
    except ValueError as exc:
        raise MessageError(f"{name} must be base64") from exc
    return text(name, value)


def fields(known: Mapping[str, Kind], **defaults: str) -> Kind:
    """Return a kind that takes an object with these fields; what is null is as if it were not there."""

    def take(name: str, value: Any) -> Message:
        if not isinstance(value, dict):
            raise MessageError(f"{name} must be an object")
        return defaults | {
            key: kind(f"{name}.{key}" if name else key, value[key])
            for key, kind in known.items()
            if value.get(key) is not None
        }

    return take


def properties(known: Mapping[str, Kind]) -> Kind:
    """Return a kind that takes an object with these fields, of which none may be null, as E2B's API does."""
    take_known = fields(known)

    def take(name: str, value: Any) -> Message:
        if isinstance(value, dict) and (
            nulls := [key for key in known if key in value and value[key] is None]
        ):
            where = f"{name}.{nulls[0]}" if name else nulls[0]
            raise MessageError(f"{where} must not be null: leave it out")
        return dict(take_known(name, value))

    return take


def _signal(name: str, value: Any) -> str | int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise MessageError(f"{name} must be a signal")
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_SELECTOR = fields({"pid": number(_MOST_32), "tag": text})
_SIZE = fields({"cols": number(_MOST_16), "rows": number(_MOST_16)})
_PTY = fields({"size": _SIZE})
_INPUT = fields({"stdin": data, "pty": data})
_PATH = {"path": text}
_WATCH = {"path": text, "recursive": flag, "includeEntry": flag}
_WATCHER = {"watcherId": text}
_FIELDS: Mapping[str, Mapping[str, Kind]] = {
    "stat": _PATH,
    "list": {"path": text, "depth": number(_MOST_32)},
    "make_dir": _PATH,
    "move": {"source": text, "destination": text},
    "remove": _PATH,
    "watch": _WATCH,
    "watcher_create": _WATCH,
    "watcher_fetch": _WATCHER,
    "watcher_remove": _WATCHER,
    "process_list": {},
    "process_start": {
        "process": fields({"cmd": text, "args": texts, "envs": variables, "cwd": text}),
        "pty": _PTY,
        "tag": text,
        "stdin": flag,
    },
    "process_connect": {"process": _SELECTOR},
    "process_signal": {"process": _SELECTOR, "signal": _signal},
    "process_input": {"process": _SELECTOR, "input": _INPUT},
    "process_close_stdin": {"process": _SELECTOR},
    "process_update": {"process": _SELECTOR, "pty": _PTY},
    # A stream of them: each says who it is for, or what to write.
    "process_stream_input": {
        "start": fields({"process": _SELECTOR}),
        "data": fields({"input": _INPUT}),
    },
}
_PATHS = {"path", "source", "destination"}
MESSAGES = {
    operation: fields(known, **dict.fromkeys(known.keys() & _PATHS, ""))
    for operation, known in _FIELDS.items()
}
"""The message of each operation of the daemon."""
