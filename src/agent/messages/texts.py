"""Texts and values that can be kept and sent: JSON may say what no request, file and checkpoint can hold.

Such as half of a pair of surrogates, a number that is none, or one of a thousand digits.
"""

import math
from typing import Any

from agent.bounded import parsed_json

MAX_DEPTH = 100
"""Of values within values; what lies deeper is left out."""


def well_formed(text: str) -> str:
    """Return the text with the halves of a pair joined where they stand together, and lone ones replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def well_formed_deeply(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return a value that JSON can hold: each text well formed, keys too, and no number that is none."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict | list) and not depth:
        return None
    if isinstance(value, dict):
        return {
            well_formed_deeply(key, depth - 1): well_formed_deeply(inner, depth - 1)
            for key, inner in value.items()
        }
    return [well_formed_deeply(inner, depth - 1) for inner in value] if isinstance(value, list) else value


def object_of(arguments: object) -> dict[str, Any] | None:
    """Return the arguments of a call, which are one JSON object; None where they are not.

    No arguments at all are an empty object: models write that for tools that take none.
    """
    if not isinstance(arguments, str):
        return None
    try:
        # Line ends within texts are what some models write; langchain reads them, too.
        data = (arguments.strip() or "{}").encode("utf-8", "surrogatepass")
        found = parsed_json(data, strict=False)
    except ValueError:
        return None
    return found if isinstance(found, dict) and is_storable(found) else None


def is_storable(value: Any) -> bool:
    """Whether a value can be kept and sent: not too deep, no number that JSON or a checkpoint lacks."""
    layer = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for one in layer:
            if isinstance(one, float) and not math.isfinite(one):
                return False
            if isinstance(one, int) and not -(2**63) <= one < 2**64:
                return False
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        if not inner:
            return True
        layer = inner
    return False
