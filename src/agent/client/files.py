"""A thread's files over the client's own connection: what its runs made, and what the next one is given.

Addresses that the server signs are for browsers: they name its public address, which this client may not
reach, and they expire. So a fresh one is asked for, and its path is used.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from langgraph_sdk.client import LangGraphClient

from agent.client.errors import NotFoundError, Where, explained
from agent.client.events import Artifact
from agent.client.fields import FieldError, Fields, fields, listed, text, whole
from agent.client.transport import RAW

_MOST_ARTIFACTS = 1000  # a server keeps fifty of a thread


class ThreadFiles:
    """The files of one thread; needs a server with this package's routes, another one answers 404.

    Args:
        client: the connection.
        where: server and thread.
    """

    def __init__(self, client: LangGraphClient, where: Where) -> None:
        self._client = client
        self._where = where

    async def artifacts(self) -> Sequence[Artifact]:
        """Return the charts and files that the thread's runs have made, oldest first.

        Raises:
            ClientError: the server did not say.
        """
        with explained(self._where):
            found = await self._client.http.get(f"/artifacts/{self._where.thread_id}")
            return [_artifact(item) for item in listed(found, "the list of artifacts", most=_MOST_ARTIFACTS)]

    async def artifact(self, name: str) -> bytes:
        """Return the bytes of a chart or file.

        Raises:
            NotFoundError: the thread has none of that name.
            ProtocolError: it is larger than the server says, or than any is.
            ClientError: the server did not give it.
        """
        found = next((each for each in await self.artifacts() if each.name == name), None)
        if found is None:
            raise NotFoundError(f"No artifact {name}", self._where, "It may have been removed since.", 404)
        with explained(self._where):
            path = _path(found.url, "/artifacts/")
            answer = await self._client.http.client.get(path, extensions={RAW: True})
            answer.raise_for_status()
            if len(answer.content) > found.size_bytes:
                size = f"{len(answer.content):,} bytes"
                raise FieldError(f"an artifact has {size}, and {found.size_bytes:,} were announced")
        return answer.content

    async def upload(self, name: str, data: bytes) -> str:
        """Put a file into the thread's sandbox, where the next run finds it; return its path there.

        The sandbox is made if there is none. Unless the context says `{"keep": "thread"}`, or the deployment
        does, it ends with that run, and the file with it.

        Args:
            name: of the file, without folders.
            data: at most 50 MB.

        Raises:
            BusyError: a run works on the thread, or it waits for an answer.
            ClientError: the server did not take it; nothing was changed.
        """
        path = f"/files/{self._where.thread_id}/{quote(name, safe='')}"
        with explained(self._where):
            answer = await self._client.http.client.put(path, content=data)
            answer.raise_for_status()
            return text(fields(answer.json(), "what it says of the file").get("path"))

    async def upload_project(self, archive: bytes) -> Mapping[str, Any]:
        """Hand in the project that the next run of `plan_execute` repairs, as a tar or zip archive.

        Returns:
            What the server says of it: `sha256`, `size_bytes`, `files`.

        Raises:
            ClientError: as `upload`.
        """
        with explained(self._where):
            given = await self._client.http.post(f"/uploads/{self._where.thread_id}", json=None)
            address = text(fields(given, "the place for the upload").get("url"))
            answer = await self._client.http.client.put(_path(address, "/uploads/"), content=archive)
            answer.raise_for_status()
            return fields(answer.json(), "what it says of the upload")


def _artifact(item: Fields) -> Artifact:
    mime, name, url, title = (text(item.get(key)) for key in ("mime", "name", "url", "title"))
    return Artifact(mime, name, url, title, whole(item.get("size_bytes")))


def _path(address: str, route: str) -> str:
    parts = urlsplit(address)
    return f"{route}{parts.path.rpartition(route)[2]}?{parts.query}"
