"""Uploads as they come in: in a file, within a time, a few at once."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from agent.server.bodies import Bodies
from support.measured import grown_mb


def request(chunks: AsyncIterator[bytes] | None = None, **headers: str) -> Request:
    """Return a request whose body is what the chunks bring."""

    async def receive() -> dict[str, Any]:
        if chunks is None:
            return {"type": "http.disconnect"}
        body = await anext(chunks, None)
        return {"type": "http.request", "body": body or b"", "more_body": body is not None}

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "PUT", "headers": named}, receive)


async def pieces(count: int, size: int = 1_000_000, waits_for: asyncio.Event | None = None) -> Any:
    """Yield pieces, and wait before the last."""
    for number in range(count):
        if number == count - 1 and waits_for:
            await waits_for.wait()
        yield bytes(size)


async def test_bodies_hold_slow_uploads_in_files_and_send_one_too_many_away() -> None:
    """Eight of 49 MB at once take no memory, the ninth is told to come back, and places are given back."""
    bodies, go_on = Bodies(places=8), asyncio.Event()
    done: list[int] = []

    async def upload() -> None:
        async with bodies.taken(request(pieces(49, waits_for=go_on)), 50_000_000) as body:
            done.append(body.size_bytes)

    with grown_mb() as grown:
        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(upload())
            while bodies._free:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)
            for _ in range(2):
                with pytest.raises(HTTPException) as caught:
                    async with bodies.taken(request(pieces(1)), 50_000_000):
                        pass
                assert (caught.value.status_code, (caught.value.headers or {})["Retry-After"]) == (503, "10")
            go_on.set()
    assert done == [49_000_000] * 8
    assert grown() <= 64
    async with bodies.taken(request(pieces(1, size=3)), 50_000_000) as body:
        assert (body.file.read(), len(body.sha256)) == (bytes(3), 64)


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (lambda: request(pieces(3)), 413),
        (lambda: request(pieces(1), content_length="2000001"), 413),
        (lambda: request(pieces(1), content_length="9" * 5000), 413),
        (lambda: request(pieces(2, waits_for=asyncio.Event())), 408),
        (lambda: request(None), 400),
    ],
    ids=["more than told", "told", "told in 5,000 digits", "slow", "gone"],
)
async def test_body_that_does_not_come_whole_is_one_error(asked: Any, status: int) -> None:
    """Too large, too slow, cut off; its place is given back."""
    bodies = Bodies(places=1, limit_s=5, idle_s=0.05)
    for _ in range(2):
        with pytest.raises(HTTPException) as caught:
            async with bodies.taken(asked(), 2_000_000):
                pass
        assert caught.value.status_code == status


async def test_body_that_trickles_is_cut_at_its_limit() -> None:
    """A byte now and then is never idle, and still takes no place for long."""

    async def trickle() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.01)
            yield b"x"

    with pytest.raises(HTTPException) as caught:
        async with Bodies(limit_s=0.2).taken(request(trickle()), 1_000):
            pass
    assert caught.value.status_code in {408, 413}
