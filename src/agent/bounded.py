"""Reading what comes from outside, a sandbox or a client: never more than was asked for.

Whoever sends may lie about sizes, or about none: bytes are counted as they arrive, and JSON is parsed only
where it cannot become many times its size in memory.
"""

import io
import json
import re
from collections.abc import AsyncIterable
from typing import Any

MAX_VALUES = 400_000
"""Of one JSON text: an empty list takes 2 bytes of text and 64 of memory."""

# One without an end is taken, too, and nothing of it is given back: else the next try would begin within it,
# and so on through all of the text.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_STRUCTURE = (b",", b":", b"[", b"{")


class TooLargeError(ValueError):
    """More came than was to be read; what had come by then is dropped."""


async def collected(chunks: AsyncIterable[bytes], max_bytes: int) -> bytes:
    """Return all that a stream brings.

    Raises:
        TooLargeError: it brings more than `max_bytes`; the rest is not read.
    """
    # The buffer is handed out as it is: a list of chunks, joined, would hold everything twice.
    buffer, size = io.BytesIO(), 0
    async for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise TooLargeError(f"more than {max_bytes} bytes")
        buffer.write(chunk)
    return buffer.getvalue()


def parsed_json(data: bytes, max_values: int = MAX_VALUES, *, strict: bool = True) -> Any:
    """Return what a JSON text says, whoever wrote it.

    Args:
        data: in UTF-8, already bounded in size.
        max_values: how many values and keys it may hold, about.
        strict: refuse line ends and tabs within texts, which models write.

    Raises:
        ValueError: it is none, holds too many values, or is nested too deeply. Nothing else is raised.
    """
    if _structure(data) > max_values and _structure(_STRING.sub(b"", data)) > max_values:
        raise TooLargeError(f"JSON with more than {max_values} values")
    try:
        return json.loads(data, strict=strict)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def _structure(data: bytes) -> int:
    return sum(map(data.count, _STRUCTURE))
