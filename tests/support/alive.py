"""Which sandboxes are alive, asked from the sandbox server itself."""

import asyncio

from e2b import SandboxInfo, SandboxQuery
from e2b_code_interpreter import AsyncSandbox

from support.e2b_process import E2BLocal


async def alive(server: E2BLocal, **metadata: str) -> list[SandboxInfo]:
    """Return the running and paused sandboxes that carry all of `metadata`."""
    pages = AsyncSandbox.list(query=SandboxQuery(metadata=metadata), **server.options)
    found: list[SandboxInfo] = []
    while pages.has_next:
        found += await pages.next_items()
    return found


async def until_alive(
    server: E2BLocal, count: int, deadline_s: float = 20.0, **metadata: str
) -> list[SandboxInfo]:
    """Wait until so many sandboxes carry the metadata, and return them."""
    async with asyncio.timeout(deadline_s):
        while len(found := await alive(server, **metadata)) != count:  # noqa: ASYNC110
            # The server sends no word of what happens to a sandbox: asking is the only way.
            await asyncio.sleep(0.02)
    return found
