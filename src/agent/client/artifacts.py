"""A thread's charts and files, fetched over the client's own connection.

Addresses that the server signs are for browsers: they name its public address, which this client may not
reach, and they expire. So a fresh one is asked for, and its path is used.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from langgraph_sdk.client import LangGraphClient

from agent.client.errors import NotFoundError, Where, explained
from agent.client.events import Artifact

_ROUTE = "/artifacts/"


async def listed(client: LangGraphClient, where: Where) -> Sequence[Artifact]:
    """Return what a thread has, oldest first, each with a fresh address.

    Raises:
        ClientError: the server did not say; one without this package's routes is `NotFoundError`.
    """
    with explained(where):
        found: list[dict[str, Any]] = await client.http.get(f"{_ROUTE}{where.thread_id}")
    return [
        Artifact(item["mime"], item["name"], item["url"], item["title"], item["size_bytes"]) for item in found
    ]


async def fetched(client: LangGraphClient, where: Where, name: str) -> bytes:
    """Return an artifact's bytes.

    Raises:
        NotFoundError: the thread has none of that name.
        ClientError: the server did not give it.
    """
    address = next((each.url for each in await listed(client, where) if each.name == name), None)
    if address is None:
        raise NotFoundError(f"No artifact {name}", where, "It may have been removed since.", 404)
    parts = urlsplit(address)
    path = _ROUTE + parts.path.rpartition(_ROUTE)[2]
    with explained(where):
        answer = await client.http.client.get(f"{path}?{parts.query}")
        answer.raise_for_status()
    return answer.content
