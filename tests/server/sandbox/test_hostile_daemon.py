"""What a program answers that has taken the place of a sandbox's daemon, or of its code interpreter."""

import asyncio
import contextlib
import functools
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from e2b.connection_config import ConnectionConfig
from e2b_code_interpreter import AsyncSandbox
from packaging.version import Version

from agent.errors import SandboxError
from agent.sandbox.e2b.box import E2BBox
from support.measured import grown_mb

SIZE = 300_000_000
PIECE = b"x" * 1_000_000
MAX_GROWN_MB = 64

Write = Callable[[bytes], Awaitable[None]]


@asynccontextmanager
async def daemon(
    status: int, kind: str, start: bytes, piece: bytes = PIECE, size: int = SIZE
) -> AsyncIterator[E2BBox]:
    """Serve one answer, of a start and as many pieces as make its size, to all that a sandbox is asked."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
        try:
            writer.write(head.encode() + start)
            for _ in range(size // len(piece)):
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    config = ConnectionConfig(
        api_url=address, sandbox_url=address, api_key="e2b_" + "0" * 40, request_timeout=30, retries=0
    )
    options: Any = {"sandbox_id": "hostile", "sandbox_domain": None, "envd_version": Version("0.6.2")}
    options |= {"envd_access_token": None, "traffic_access_token": None, "connection_config": config}
    try:
        yield E2BBox(AsyncSandbox(**options))
    finally:
        server.close()


async def run(box: E2BBox) -> object:
    """Run a command."""
    return await box.run_command("true", timeout_s=20)


async def ask(box: E2BBox) -> object:
    """Call a program of ours."""
    return await box.work_on_files("list", path="/", root="/", also=[], most=1)


async def code(box: E2BBox) -> object:
    """Run a cell."""
    return await box.run_code("1", timeout_s=20)


async def read(box: E2BBox) -> object:
    """Read a file."""
    return await box.read_file("/home/user/a")


async def write(box: E2BBox) -> object:
    """Write a file."""
    return await box.write_files({"/home/user/a": b"x"})


async def listing(box: E2BBox) -> object:
    """List a folder."""
    return await box.list_files("/home/user")


ENVELOPE = b"\0" + SIZE.to_bytes(4, "big")
STREAM, JSON, TEXT = "application/connect+json", "application/json", "text/plain"


@pytest.mark.parametrize(
    ("work", "status", "kind", "start"),
    [
        (run, 200, STREAM, ENVELOPE),
        (run, 500, JSON, b'{"code": "internal", "message": "'),
        (run, 502, TEXT, b""),
        (ask, 200, STREAM, ENVELOPE),
        (code, 404, TEXT, b""),
        (code, 500, TEXT, b""),
        (read, 200, TEXT, b""),
        (read, 404, JSON, b'{"message": "'),
        (write, 200, JSON, b'["'),
        (write, 507, TEXT, b""),
        (listing, 200, JSON, b'{"entries": [{"name": "'),
        (listing, 500, TEXT, b""),
    ],
)
async def test_no_answer_of_a_daemon_is_read_to_its_end(
    work: Callable[[E2BBox], Awaitable[object]], status: int, kind: str, start: bytes
) -> None:
    """A message, an answer and an error of 300 MB: refused as they come, as one of our errors."""
    async with daemon(status, kind, start) as box:
        with grown_mb() as grown, pytest.raises((SandboxError, OSError)):
            await work(box)
        assert grown() <= MAX_GROWN_MB


@pytest.mark.parametrize("work", [read, write, code, listing, run])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "gzip, gzip, gzip", "br", "zstd"])
async def test_no_answer_of_a_daemon_is_decompressed_at_once(
    work: Callable[[E2BBox], Awaitable[object]], encoding: str
) -> None:
    """A few KB that are hundreds of MB, once or three times over: they come to nothing."""
    packed = _packed(encoding)
    kind = f"{JSON}\r\ncontent-encoding: {encoding}"
    async with daemon(200, kind, packed, size=0) as box:
        with grown_mb() as grown, contextlib.suppress(SandboxError, OSError):
            await work(box)
        assert grown() <= MAX_GROWN_MB


@functools.cache
def _packed(encoding: str) -> bytes:
    once = zlib.compressobj(9, wbits=15 if encoding == "deflate" else 31)
    packed = b"".join(once.compress(PIECE) for _ in range(SIZE // len(PIECE))) + once.flush()
    return gzip.compress(gzip.compress(packed)) if encoding.count("gzip") == 3 else packed


def line(**said: Any) -> bytes:
    """Return a line of the code interpreter."""
    return json.dumps(said).encode() + b"\n"


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b'{"type": "stdout", "text": "', PIECE),
        (b"", line(type="result", text="é" * 1_000_000)),
        (b"", line(type="stderr", text="x" * 500)),
        (b"", b"[" * 100_000 + b"\n"),
    ],
    ids=["one line without end", "results without end", "lines without end", "deep lines without end"],
)
async def test_lines_of_a_cell_without_end_are_cut(start: bytes, piece: bytes) -> None:
    """The cell's result stands, with what can be used of it, and what was left out is said."""
    async with daemon(200, TEXT, start, piece, size=100_000_000) as box:
        with grown_mb() as grown:
            result = await box.run_code("1", timeout_s=100)
        assert grown() <= MAX_GROWN_MB
        assert len(result.stdout) + len(result.stderr) < 600_000
        assert len(result.results) <= 201


@pytest.mark.parametrize(
    "odd",
    [
        b"5\n",
        b"[]\n",
        b"not JSON\n",
        b'{"type": 5}\n',
        b'{"type": "stdout"}\n',
        b'{"type": "stdout", "text": 7}\n',
        b'{"type": "result", "png": {"a": 1}, "chart": 7, "extra": []}\n',
        b'{"type": "result", "chart": {"type": "line", "elements": 5}}\n',
        b'{"type": "error", "name": 5, "value": null, "traceback": ["a", 5]}\n',
        b'{"type": "number_of_executions", "execution_count": "five"}\n',
        b'{"type": "number_of_executions", "execution_count": ' + b"9" * 5000 + b"}\n",
        b'{"type": "number_of_executions", "execution_count": NaN}\n',
        b"\xff\xfe\n",
    ],
)
async def test_odd_lines_of_a_cell_cost_no_result(odd: bytes) -> None:
    """Wrong types, missing fields, numbers too long: what is odd is left out, and the rest stands."""
    after = line(type="stdout", text="after", timestamp="")
    async with daemon(200, TEXT, odd + after, size=0) as box:
        assert (await box.run_code("1", timeout_s=20)).stdout == "after"
