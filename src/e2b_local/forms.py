"""Forms as browsers and SDKs send them (multipart/form-data), read part by part as they arrive.

Nothing is kept: a part's data goes on before the next part is read, whether it has a file's name or not.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

_MOST_PARTS = 10_000


class FormError(ValueError):
    """What was sent is no form, or breaks off."""


@dataclasses.dataclass(frozen=True)
class Part:
    """The head of one part: the name of its field, and that of its file where it has one."""

    name: str
    filename: str


class Form:
    """The parts of one request; call `parts` once."""

    def __init__(self, content_type: str, body: AsyncIterator[bytes]) -> None:
        """Read the boundary.

        Raises:
            FormError: there is none, or it is none.
        """
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data" or not options.get(b"boundary"):
            raise FormError("its Content-Type must be multipart/form-data with a boundary")
        self._body = body
        self._events: collections.deque[Part | bytes | None] = collections.deque()
        self._over = False
        self._parts = 0
        self._header, self._value, self._disposition = b"", b"", b""
        try:
            self._parser = MultipartParser(
                options[b"boundary"],
                {
                    "on_part_begin": self._begin,
                    "on_header_field": self._on_header,
                    "on_header_value": self._on_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers,
                    "on_part_data": self._on_data,
                    "on_part_end": self._on_part_end,
                    "on_end": self._on_end,
                },
            )
        except FormParserError as exc:
            raise FormError(str(exc)) from exc

    async def parts(self) -> AsyncGenerator[tuple[Part, AsyncGenerator[bytes, None]], None]:
        """Yield each part with its data; data that is not taken before the next part is passed over.

        Raises:
            FormError: the form cannot be read, or ends before its end; so do the data.
        """
        while (event := await self._next()) is not None or not self._over:
            if isinstance(event, Part):
                data = self._data()
                yield event, data
                async for _ in data:
                    pass

    async def _data(self) -> AsyncGenerator[bytes, None]:
        while isinstance(event := await self._next(), bytes):
            yield event

    async def _next(self) -> Part | bytes | None:
        """Return the next event: a head, a piece of data, or None for the end of a part or of the form."""
        while not self._events and not self._over:
            piece = await anext(self._body, None)
            if piece is None:
                raise FormError("it breaks off before its last boundary")
            try:
                self._parser.write(piece)
            except FormParserError as exc:
                raise FormError(str(exc)) from exc
        return self._events.popleft() if self._events else None

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise FormError(f"it has more than {_MOST_PARTS} parts")
        self._disposition = b""

    def _on_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header, self._value = b"", b""

    def _on_headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"name" not in options:
            raise FormError("a part has no name")
        name, filename = (options.get(key, b"").decode(errors="replace") for key in (b"name", b"filename"))
        self._events.append(Part(name, filename))

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        self._events.append(data[start:end])

    def _on_part_end(self) -> None:
        self._events.append(None)

    def _on_end(self) -> None:
        self._over = True
