"""A box: one running environment for a sandbox, whatever keeps it apart from the host."""

from __future__ import annotations

import asyncio
import pathlib
from typing import Protocol

from e2b_local.agent_client import AgentClient
from e2b_local.egress import Egress


class BoxStartError(Exception):
    """A box could not be started; nothing of it is left."""


class Box(Protocol):
    """A started environment with its agent listening."""

    agent: AgentClient
    ended: asyncio.Event
    most_bytes: int | None
    """How large an archive of its files can be, None where nothing bounds them."""

    async def freeze(self) -> None:
        """Stop every process in the box, keeping its memory."""

    async def thaw(self) -> None:
        """Let every process go on."""

    async def set_internet(self, egress: Egress | None) -> None:
        """Open this much of the way to the internet and nothing else; None closes it.

        Raises:
            ApiError: it cannot be; no more is open than before.
        """

    async def kill(self) -> None:
        """End every process of the box at once and free what it held; calling it again does nothing."""


class Launcher(Protocol):
    """Starts boxes of one kind."""

    async def launch(self) -> Box:
        """Start a box.

        Raises:
            BoxStartError: it did not come up.
        """


INBOX = pathlib.Path(__file__).parent / "inbox"


async def await_ready(process: asyncio.subprocess.Process, timeout_s: float = 30.0) -> None:
    """Wait until the agent says that it listens.

    Raises:
        BoxStartError: it ended or stayed silent; the process has been killed.
    """
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), timeout_s)
    except TimeoutError:
        line = b""
    if line == b"ready\n":
        return
    if process.stdin is not None:
        process.stdin.close()  # an agent that is up after all ends with its input
    if process.returncode is None:
        process.kill()
    said = b""
    if process.stderr is not None:
        said = await process.stderr.read(2000)
    await process.wait()
    raise BoxStartError(f"the sandbox did not start: {said.decode(errors='replace').strip() or 'no answer'}")
