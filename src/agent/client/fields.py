"""Fields of what a server says, of the kind they must have; what else stands there is refused or passed over.

A server may be broken, or not what it seems; what it says is JSON of any form until it was looked at here.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{5,20}(Z|[+-]\d\d:?\d\d)?", re.ASCII)

DEPTH = 100
"""How deep objects and lists may lie in each other: messages in a state lie about ten deep, and what walks
down some hundreds, such as `json.dumps` or `repr`, fails."""

Fields = Mapping[str, Any]


class FieldError(ValueError):
    """What the server says has not the form that was asked for; says what is wrong with what."""


def fields(value: Any, what: str) -> Fields:
    """Return an object.

    Raises:
        FieldError: it is none.
    """
    if not isinstance(value, Mapping):
        raise FieldError(f"{what} is {_kind(value)} in place of an object")
    return value


def listed(value: Any, what: str, *, most: int) -> list[Fields]:
    """Return a list of at most so many objects.

    Raises:
        FieldError: it is none, holds something else, or more than was asked for.
    """
    if not isinstance(value, list):
        raise FieldError(f"{what} is {_kind(value)} in place of a list")
    if len(value) > most:
        raise FieldError(f"{what} has {len(value):,} entries, and at most {most:,} were asked for")
    return [fields(each, f"an entry of {what}") for each in value]


def word(value: Any, what: str) -> str:
    """Return a text that says something.

    Raises:
        FieldError: it is none, or empty.
    """
    if not isinstance(value, str) or not value:
        raise FieldError(f"{what} is {_kind(value) if value != '' else 'empty'} in place of a word")
    return value


def identifier(value: Any, what: str) -> str:
    """Return an id: it becomes a part of addresses, and of commands that a user copies.

    Raises:
        FieldError: it is none, or holds what no id needs.
    """
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise FieldError(f"{what} is no id")
    return value


def objects(value: Any) -> list[Fields]:
    """Return the objects of a list; what is none is passed over."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def text(value: Any) -> str:
    """Return a text; empty where there is none."""
    return value if isinstance(value, str) else ""


def whole(value: Any, default: int = 0) -> int:
    """Return a whole number; the default where there is none."""
    number = number_or_none(value)
    return default if number is None else number


def number_or_none(value: Any) -> int | None:
    """Return a whole number, or None where there is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value if isinstance(value, int) else None


def instant(value: Any) -> str:
    """Return a moment in ISO 8601; empty where there is none."""
    return value if isinstance(value, str) and _INSTANT.fullmatch(value) else ""


def deep(value: Any, most: int = DEPTH) -> bool:
    """Whether objects and lists lie deeper in each other than what walks down them can go."""
    level: list[Any] = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        if not level:
            return False
        within = (found.values() if isinstance(found, dict) else found for found in level)
        level = [each for values in within for each in values if isinstance(each, dict | list)]
    return bool(level)


def json_size(value: Any, most: int) -> int:
    """Return how many characters a value has as JSON; once it has more than `most`, no more are counted."""
    counted = 0
    for piece in json.JSONEncoder().iterencode(value):
        counted += len(piece)
        if counted > most:
            break
    return counted


def _kind(value: Any) -> str:
    kinds = {type(None): "nothing", str: "a text", list: "a list", bool: "a truth value", dict: "an object"}
    return kinds.get(type(value), "a number")
