"""Which sandboxes are alive, asked from the sandbox server itself."""

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
