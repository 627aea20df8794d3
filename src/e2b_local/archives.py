"""The files of a box as an archive on the host, which never looks into it."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from contextlib import AsyncExitStack

from e2b_local.agent_client import BoxGoneError, final, outcome
from e2b_local.box import Box
from e2b_local.inbox.wire import CHUNK_BYTES, OpError


async def save(box: Box, archive: pathlib.Path) -> None:
    """Write the files of a box to an archive on the host; leave none on an error.

    Raises:
        OpError: the files could not be read, there is no room for them, or more comes than a box can hold.
        BoxGoneError: the box ended meanwhile.
    """
    async with AsyncExitStack() as undo:
        undo.push_async_callback(asyncio.to_thread, archive.unlink, missing_ok=True)
        try:
            with archive.open("xb") as file:
                async with box.agent.open("archive") as channel:
                    while isinstance(piece := await channel.receive(), bytes):
                        if box.most_bytes is not None and file.tell() + len(piece) > box.most_bytes:
                            # Whoever sends it is inside, and may send without end.
                            raise OpError("resource_exhausted", "cannot keep the snapshot: it is too large")
                        await asyncio.to_thread(file.write, piece)
                    outcome(piece)
        except OSError as exc:
            raise OpError("resource_exhausted", f"cannot keep the snapshot: {exc.strerror}") from exc
        undo.pop_all()


async def restore(box: Box, archive: pathlib.Path) -> None:
    """Put the files of an archive into a box.

    Raises:
        OpError: they do not fit or cannot be written; the box then holds a part of them.
        BoxGoneError: the box ended meanwhile.
    """
    with archive.open("rb") as file:
        async with box.agent.open("unpack") as channel:
            # A box that gave up has answered already; its answer says more than the broken pipe.
            with contextlib.suppress(BoxGoneError, ConnectionError):
                while piece := await asyncio.to_thread(file.read, CHUNK_BYTES):
                    await channel.send_data(piece)
                await channel.send({"end": True})
            await final(channel)
