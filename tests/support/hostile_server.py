"""An HTTP server that answers as no LangGraph server does, one way for each kind of hostility."""

import asyncio
import gzip
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

THREAD = "00000000-0000-4000-8000-000000000000"
RUN = "00000000-0000-4000-8000-000000000001"
SENDS_AT_MOST = 400_000_000  # bytes of what never ends

NOTHING_RIGHT: dict[str, Any] = {
    "thread_id": {"a": 1},
    "run_id": [1],
    "graph_id": 4,
    "metadata": "words",
    "status": ["busy"],
    "values": [1],
    "interrupts": 7,
    "tasks": "x",
    "created_at": {},
    "updated_at": 1e300,
    "version": [],
    "deployment": {},
}


@dataclass
class Request:
    """What was asked."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class HostileServer:
    """Answers each request by its kind; keeps what was asked, and how many bytes were taken."""

    kind: str
    elsewhere: str = ""
    """Where redirects lead."""
    stream: bytes = b""
    """What the streams of an honest server hold."""
    artifact: tuple[dict[str, Any], bytes] | None = None
    """What an honest server says of an artifact, and its bytes."""
    state: dict[str, Any] = field(default_factory=dict)
    """What an honest server says of each thread's state, beside an empty one's fields."""
    graph: str = "agent"
    """What each of its threads ran."""
    requests: list[Request] = field(default_factory=list)
    sent: int = 0
    url: str = ""

    def answer(self, request: Request) -> bytes | AsyncIterator[bytes]:
        """Return the bytes of an answer, or an iterator of what has no end."""
        method: Callable[[Request], bytes | AsyncIterator[bytes]] = getattr(self, f"_{self.kind}")
        return method(request)

    # Answers that no server gives

    def _redirect(self, request: Request) -> bytes:
        return _head(307, f"Location: {self.elsewhere}{request.path}", "Content-Length: 0")

    def _page(self, request: Request) -> bytes:
        return _body(b"<!doctype html><title>\x1b[2J</title>" * 50, "text/html")

    def _page_called_json(self, request: Request) -> bytes:
        return _body(b"<html></html>")

    def _words(self, request: Request) -> bytes:
        return _body(b"what?")

    def _nothing(self, request: Request) -> bytes:
        return _body(b"")

    def _null(self, request: Request) -> bytes:
        return _body(b"null")

    def _list_of_no_objects(self, request: Request) -> bytes:
        return _body(b'[1, "x", []]')

    def _text(self, request: Request) -> bytes:
        return _body(json.dumps("\x1b[2J").encode())

    def _deep_list(self, request: Request) -> bytes:
        return _body(b"[" * 100_000 + b"]" * 100_000)

    def _deep_object(self, request: Request) -> bytes:
        return _body(b'{"values":' * 700 + b"1" + b"}" * 700)

    def _many_values(self, request: Request) -> bytes:
        return _body(b"[" + b"[]," * 4_000_000 + b"[]]")

    def _nothing_right(self, request: Request) -> bytes:
        found = [NOTHING_RIGHT] if _lists(request) else NOTHING_RIGHT
        return _body(json.dumps(found).encode())

    def _ids_that_are_none(self, request: Request) -> bytes:
        odd = dict.fromkeys(("thread_id", "run_id"), "../x;rm -rf \x00\x1b[2J")
        found = odd | {"status": "running", "interrupts": [{"id": "a b", "value": 1}]}
        return _body(json.dumps([found] if _lists(request) else found).encode())

    def _compressed(self, request: Request) -> bytes:
        data = gzip.compress(bytes(50_000_000))
        return _head(200, "Content-Encoding: gzip", f"Content-Length: {len(data)}") + data

    def _endless_answer(self, request: Request) -> AsyncIterator[bytes]:
        return _forever(_head(200, "Content-Type: application/json"), b'["' + b"x" * 65_536)

    def _endless_refusal(self, request: Request) -> AsyncIterator[bytes]:
        return _forever(_head(500, "Content-Type: text/html"), b"<p>" * 20_000)

    def _endless_headers(self, request: Request) -> AsyncIterator[bytes]:
        return _forever(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 10_000)

    def _endless_continues(self, request: Request) -> AsyncIterator[bytes]:
        return _forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    def _another_protocol(self, request: Request) -> bytes:
        return b"SSH-2.0-\x1b[2J\r\n"

    def _refusal_with_escapes(self, request: Request) -> bytes:
        body = json.dumps({"detail": "no\x1b[2K\r\n\u202e" + "\nApproved." * 100}).encode()
        return _head(400, f"Content-Length: {len(body)}") + body

    def _drips(self, request: Request) -> AsyncIterator[bytes]:
        async def dripping() -> AsyncIterator[bytes]:
            yield _head(200, "Content-Type: application/json", "Content-Length: 1000000")
            while True:
                yield b" "
                await asyncio.sleep(0.05)

        return dripping()

    # One that is honest but for its streams, its states and its artifacts

    def _honest(self, request: Request) -> bytes | AsyncIterator[bytes]:
        path = request.path.partition("?")[0]
        if path.endswith("/stream"):
            head = _head(
                200, "Content-Type: text/event-stream", f"Content-Location: /threads/{THREAD}/runs/{RUN}"
            )
            return _forever(head, self.stream) if self.stream.startswith(b"forever") else head + self.stream
        found: Any = {"thread_id": THREAD, "status": "idle", "metadata": {"graph_id": self.graph}}
        if path.endswith("/state"):
            found = {"values": {}, "interrupts": [], "tasks": [], "created_at": None} | self.state
        elif path.endswith(("/runs", "/search")):
            found = []
        elif "/runs/" in path:
            found = {"run_id": RUN, "status": "success"}
        elif path.startswith("/artifacts/"):
            if self.artifact and path.count("/") > 2:
                return _body(self.artifact[1], "image/png")
            found = [self.artifact[0]] if self.artifact else []
        return _body(json.dumps(found).encode())

    def _many_that_wait(self, request: Request) -> bytes | AsyncIterator[bytes]:
        if not request.path.endswith("/search"):
            return self._honest(request)
        wanted = json.loads(request.body)
        numbers = range(wanted["offset"], wanted["offset"] + wanted["limit"])
        return _body(
            json.dumps([{"thread_id": f"t{each}", "status": "interrupted"} for each in numbers]).encode()
        )


@contextmanager
def serving(server: HostileServer) -> Iterator[HostileServer]:
    """Serve on a free loopback port, in a thread of its own."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with await asyncio.start_server(
            lambda reader, writer: _connection(server, reader, writer), "127.0.0.1", 0
        ) as listening:
            server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            ready.set()
            await stop.wait()
            listening.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


async def _connection(
    server: HostileServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length") or 0))
        request = Request(method, path, headers, body)
        server.requests.append(request)
        answer = server.answer(request)
        if isinstance(answer, bytes):
            await _write(server, writer, answer)
        else:
            async for piece in answer:
                await _write(server, writer, piece)
    except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
        pass
    finally:
        writer.close()


async def _write(server: HostileServer, writer: asyncio.StreamWriter, piece: bytes) -> None:
    writer.write(piece)
    await writer.drain()
    server.sent += len(piece)


async def _forever(head: bytes, piece: bytes) -> AsyncIterator[bytes]:
    yield head
    sent = 0
    while sent < SENDS_AT_MOST:
        sent += len(piece)
        yield piece


def _head(status: int, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status} Said", *headers, "Connection: close", "", ""]).encode()


def _body(body: bytes, kind: str = "application/json") -> bytes:
    return _head(200, f"Content-Type: {kind}", f"Content-Length: {len(body)}") + body


def _lists(request: Request) -> bool:
    path = request.path.partition("?")[0]
    return path.endswith(("/search", "/runs")) or path.startswith("/artifacts/")
