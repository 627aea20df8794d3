"""What the code interpreter says of a cell, line by line, with what is too long or malformed left out.

A line is JSON: a piece of output, a result, an error, a count. What a cell prints and displays is bounded in
its kernel already (`inside/cells.py`); this holds where the kernel's hooks are passed by, or what answers is
not the interpreter.
"""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from typing import Any

from agent.bounded import TooLargeError, parsed_json
from agent.sandbox.output import BoundedText

MAX_LINE_BYTES = 8_000_000
"""Of one result: an image of 5 MB as base64, and what stands around it."""
MAX_WIDE_LINE_BYTES = 4_000_000
"""The same of one that is not all ASCII: an odd character makes a text four times as large in memory."""
MAX_LINE_VALUES = 100_000
"""Of a line; a kernel passes on what has many as a text (`inside/cells.py`)."""
MAX_RESULTS_BYTES = 20_500_000
"""Of all results of one cell, as they are in memory: three images of 5 MB."""
MAX_RESULTS = 100
MAX_FORMS = 20
"""Of one result, beside those that have a name of their own."""
MAX_PRINTED_BYTES = 8_000_000
"""Of each stream of one cell, as it is in memory: the SDK keeps it until the cell's end."""
MAX_PART_CHARS = 65_536
"""Of each part of an exception, and of what is printed beyond the bound."""

_MIME = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}")
_TEXTS = ("text", "html", "markdown", "svg", "png", "jpeg", "pdf", "latex", "javascript")
_MAPS = ("json", "data", "chart", "extra")
Line = dict[str, Any]


class CellLines:
    """Reads the lines of one cell, and passes on those that can be used."""

    def __init__(self) -> None:
        self._room = {"stdout": MAX_PRINTED_BYTES, "stderr": MAX_PRINTED_BYTES, "result": MAX_RESULTS_BYTES}
        self._rests = {name: BoundedText(MAX_PART_CHARS) for name in ("stdout", "stderr")}
        self._results = 0

    async def passed(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield what can be used of a stream of lines; one that is too long is never held as a whole."""
        line, size = bytearray(), 0
        async for chunk in chunks:
            for piece in chunk.splitlines(keepends=True):
                size += len(piece)
                if size <= MAX_LINE_BYTES:
                    line += piece
                else:
                    line.clear()
                if piece.endswith(b"\n"):
                    whole, of, line, size = bytes(line), size, bytearray(), 0
                    yield self._line(whole, of)
                    if of > MAX_PART_CHARS:
                        await asyncio.sleep(0)  # parsed twice, here and by the SDK: others may go between
        if size:
            yield self._line(bytes(line), size)
        for name, rest in self._rests.items():
            if rest.total_chars:
                yield _written({"type": name, "text": rest.text(), "timestamp": ""})

    def _line(self, data: bytes, size: int) -> bytes:
        """Return one line as it may be passed on: empty where there is nothing to pass on."""
        wide = b"\\u" in data or not data.isascii()
        if not data or size > (MAX_WIDE_LINE_BYTES if wide else MAX_LINE_BYTES):
            return self._left_out(size)
        try:
            said = parsed_json(data, MAX_LINE_VALUES)
        except TooLargeError:
            return self._left_out(size)
        except ValueError:
            return b""
        match said:
            case {"type": "stdout" | "stderr" as name, "text": str(text)}:
                return self._printed(name, text)
            case {"type": "result"}:
                return self._result(said, size, data)
            case {"type": "error"}:
                parts = {name: _part(said.get(name)) for name in ("name", "value", "traceback")}
                return _written({"type": "error", **parts})
            case {"type": "number_of_executions", "execution_count": int(count)} if 0 <= count < 2**53:
                return _written({"type": "number_of_executions", "execution_count": int(count)})
        return b""

    def _printed(self, name: str, text: str) -> bytes:
        self._room[name] -= sys.getsizeof(text)
        if self._room[name] < 0:
            self._rests[name].add(text)
            return b""
        return _written({"type": name, "text": text, "timestamp": ""})

    def _result(self, said: Line, size: int, data: bytes) -> bytes:
        result = _usable(said)
        self._room["result"] -= _weight(result)
        self._results += 1
        if self._room["result"] < 0 or self._results > MAX_RESULTS:
            return self._left_out(size)
        return data if result == said and data.isascii() else _written(result)

    def _left_out(self, size: int) -> bytes:
        """Say that something was left out; after many such, nothing."""
        self._results += 1
        if self._results > 2 * MAX_RESULTS:
            return b""
        text = f"[a result of {size} bytes was left out: it is more than can be passed on; save it to a file]"
        return _written({"type": "result", "text": text, "is_main_result": False})


def _usable(said: Line) -> Line:
    """Return a result with the forms that have the type they should have."""
    result: Line = {"type": "result", "is_main_result": said.get("is_main_result") is True}
    result |= {name: said[name] for name in _TEXTS if isinstance(said.get(name), str)}
    result |= {name: said[name] for name in _MAPS if isinstance(said.get(name), dict)}
    if isinstance(said.get("json"), list | str | int | float):
        result["json"] = said["json"]
    more = [(kind, value) for kind, value in result.get("extra", {}).items() if _MIME.fullmatch(kind)]
    return result | {"extra": dict(more[:MAX_FORMS])}


def _weight(value: Any) -> int:
    """Return about how much memory a JSON value takes, in bytes."""
    if isinstance(value, dict):
        return 64 + sum(_weight(name) + _weight(each) for name, each in value.items())
    return 64 + sum(map(_weight, value)) if isinstance(value, list) else sys.getsizeof(value)


def _part(value: Any) -> str:
    """Return a part of an exception, of a long one the end; some interpreters send lines as a list."""
    if isinstance(value, list):
        value = "".join(each for each in value if isinstance(each, str))
    return value[-MAX_PART_CHARS:] if isinstance(value, str) else ""


def _written(line: Line) -> bytes:
    # ASCII alone: the SDK's reader of lines takes more for an end of line than this does.
    return json.dumps(line).encode() + b"\n"
