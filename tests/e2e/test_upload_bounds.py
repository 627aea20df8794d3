"""Uploads to a served graph: many, slow and crafted ones neither grow the server nor hold it up."""

import asyncio
import gzip
import io
import tarfile
from collections.abc import AsyncIterator

import httpx
from langgraph_sdk.client import LangGraphClient

from support.langgraph_dev import DevServer
from support.measured import grown_mb

MAX_GROWN_MB = 64


async def body(pieces: int) -> AsyncIterator[bytes]:
    """Yield a body of so many MB, slowly."""
    for _ in range(pieces):
        yield bytes(1_000_000)
        await asyncio.sleep(0.05)


async def test_ten_slow_uploads_are_held_by_no_memory(server: DevServer, client: LangGraphClient) -> None:
    """Eight are taken in, two are told when to come back, and the server answers meanwhile."""
    threads = [(await client.threads.create())["thread_id"] for _ in range(10)]
    assert server.pid is not None
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as browser:

        async def put(thread: str) -> httpx.Response:
            return await browser.put(f"/files/{thread}/big.bin", content=body(40))

        with grown_mb(server.pid) as grown:
            async with asyncio.TaskGroup() as group:
                uploads = [group.create_task(put(thread)) for thread in threads]
                while not all(upload.done() for upload in uploads):
                    assert (await browser.get("/ok")).status_code == 200
                    await asyncio.sleep(0.05)
        answers = [upload.result() for upload in uploads]
    assert sorted(answer.status_code for answer in answers) == [200] * 8 + [503] * 2
    assert {answer.headers.get("retry-after") for answer in answers} == {None, "10"}
    assert grown() <= MAX_GROWN_MB
    for thread in threads:
        await client.threads.delete(thread)


async def test_archive_with_a_header_of_700_mb_is_refused_in_little_memory(
    server: DevServer, client: LangGraphClient
) -> None:
    """A few MB that claim, and hold, attributes of 700 MB: 422 before they are unpacked."""
    claims = tarfile.TarInfo("x")
    claims.size, claims.type = 700_000_000, tarfile.XHDTYPE
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as made:
        made.write(claims.tobuf())
        for _ in range(700):
            made.write(bytes(1_000_000))
    thread = (await client.threads.create())["thread_id"]
    assert server.pid is not None
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as browser:
        address = (await browser.post(f"/uploads/{thread}")).json()["url"]
        with grown_mb(server.pid) as grown:
            answer = await browser.put(address, content=packed.getvalue())
    assert (answer.status_code, "longer than any can be" in answer.text) == (422, True)
    assert grown() <= MAX_GROWN_MB
