"""The client's way to a server, with a bound on all that comes back.

The SDK reads an answer whole, and parses whatever it holds. A server that is broken, or not what it seems,
could so fill the memory, keep a command for ever, or lead it, with its key, elsewhere. Here, beneath the SDK:

- redirects are followed nowhere, and no connection is opened but to the server's own address;
- answers come as they are: one that is compressed was not asked for, and would unpack to any size;
- an answer, an event and a stream have a limit of bytes, an answer one of time, JSON one of depth and values.

What is beyond raises `httpx.DecodingError`, which is no failure of the connection: it is not tried again.
"""

import asyncio
import re
from array import array
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import accumulate

import httpx

from agent.client.fields import DEPTH

RAW = "agent.client.raw"
"""As a request's extension: its answer is a file, and not JSON."""

_STREAM = "text/event-stream"
_PLAIN_PATH = re.compile(r"/[\w/.?=&%-]*", re.ASCII)
# A string; one that does not end goes to the end, so that no text takes long.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS = bytes(each for each in range(256) if each not in b"[]{}")
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes, up and down
_EVENT_END = re.compile(rb"\n\n|\r\r|\r\n\r\n")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a server may send."""

    answer_bytes: int = 64_000_000
    """Of one answer in JSON: a thread's state has a few."""
    file_bytes: int = 20_000_000
    """Of one file that is fetched: an artifact has at most 5 MB."""
    error_bytes: int = 1_000_000
    """Of one that refuses; the rest is not read."""
    answer_s: float = 600.0
    """Until the last byte of an answer, and the first of a stream of events."""
    event_bytes: int = 16_000_000
    """Of one event of a stream."""
    stream_bytes: int = 1_000_000_000
    """Of one stream until it is joined again: hours of a run that prints as fast as it may."""
    values: int = 2_000_000
    """In the JSON of one answer: each takes up to a hundred bytes of memory, and two of the answer."""
    depth: int = DEPTH
    """Of that JSON, and of what an event holds."""


class BoundedTransport(httpx.AsyncBaseTransport):
    """Sends requests on, and bounds what is answered.

    Args:
        inner: the transport that connects.
        limits: how much a server may send.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, limits: Limits | None = None) -> None:
        self._inner = inner
        self._limits = limits or Limits()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            httpx.DecodingError: the answer is a redirect, compressed, or too slow.
        """
        request.headers["accept-encoding"] = "identity"
        give_up = asyncio.get_running_loop().time() + self._limits.answer_s
        try:
            async with asyncio.timeout_at(give_up):
                response = await self._inner.handle_async_request(request)
        except TimeoutError as exc:
            raise _too_slow(self._limits) from exc
        events = response.headers.get("content-type", "").startswith(_STREAM)
        if refusal := _refusal(request, response, events=events):
            await response.aclose()
            raise httpx.DecodingError(refusal)
        # The SDK goes on there when the connection breaks, and warns of it with these words. Streams are
        # joined by the driver, which says so; the SDK would try for 15 s in silence.
        if events or not _PLAIN_PATH.fullmatch(response.headers.get("location", "/")):
            response.headers.pop("location", None)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_BoundedStream(response, self._limits, give_up, raw=RAW in request.extensions),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class _BoundedStream(httpx.AsyncByteStream):
    """The body of an answer, counted as it comes."""

    def __init__(self, response: httpx.Response, limits: Limits, give_up: float, *, raw: bool) -> None:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        self._stream = response.stream
        self._limits = limits
        self._give_up = give_up
        self._is_events = response.headers.get("content-type", "").startswith(_STREAM)
        self._is_json = response.is_success and not raw
        self._most = limits.file_bytes if raw else limits.answer_bytes
        self._refuses = not response.is_success

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._events() if self._is_events else self._answer()

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def _answer(self) -> AsyncIterator[bytes]:
        size, kept = 0, bytearray()
        pieces = aiter(self._stream)
        try:
            while True:
                async with asyncio.timeout_at(self._give_up):
                    piece = await anext(pieces, None)
                if piece is None:
                    break
                size += len(piece)
                if size > self._limits.error_bytes and self._refuses:
                    break  # its status is what counts
                if size > self._most:
                    raise httpx.DecodingError(f"it is larger than {self._most:,} bytes")
                if self._is_json:
                    kept += piece
                    if len(kept) == size == len(piece):
                        _refuse_page(piece)
                yield piece
        except TimeoutError as exc:
            raise _too_slow(self._limits) from exc
        _refuse_odd(bytes(kept), self._limits)

    async def _events(self) -> AsyncIterator[bytes]:
        whole = event = 0
        before = b""
        async for piece in self._stream:
            whole += len(piece)
            ends = [found.end() for found in _EVENT_END.finditer(before + piece)]
            event = len(before + piece) - ends[-1] if ends else event + len(piece)
            before = piece[-3:]
            if event > self._limits.event_bytes:
                raise httpx.DecodingError(f"an event is larger than {self._limits.event_bytes:,} bytes")
            if whole > self._limits.stream_bytes:
                raise httpx.DecodingError(f"a stream is larger than {self._limits.stream_bytes:,} bytes")
            yield piece


def _refuse_odd(body: bytes, limits: Limits) -> None:
    """See that JSON is neither too deep nor of too many values; whether it is JSON at all, its parser says.

    Raises:
        httpx.DecodingError: it is.
    """
    outside = _STRING.sub(b"", body)
    steps = array("b", outside.translate(_STEPS, _BRACKETS))
    if max(accumulate(steps), default=0) > limits.depth:
        raise httpx.DecodingError(f"its JSON is deeper than {limits.depth} levels")
    if outside.count(b",") + len(steps) > limits.values:
        raise httpx.DecodingError(f"its JSON has more than {limits.values:,} values")


def _too_slow(limits: Limits) -> httpx.DecodingError:
    """Return the error of an answer that comes by drips."""
    return httpx.DecodingError(f"it was not complete within {limits.answer_s:g} s")


def _refusal(request: httpx.Request, response: httpx.Response, *, events: bool) -> str:
    """Return why an answer is not read at all; empty when it is."""
    if 300 <= response.status_code < 400:
        where = response.headers.get("location", "nowhere")
        return f"it is a redirect to {where}, which is not followed"
    if response.is_success and not events and request.headers.get("accept") == _STREAM:
        return "it is no stream of events"
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    return "" if encoding in {"", "identity"} else f"it is encoded as {encoding}, which was not asked for"


def _refuse_page(begin: bytes) -> None:
    if begin.lstrip().startswith(b"<"):
        raise httpx.DecodingError("it is a page in place of JSON")
