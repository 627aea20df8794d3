"""Ending what a command left running when its limit passed, its caller went away or its stream broke."""

import asyncio
import logging
import secrets
from collections.abc import Coroutine
from typing import Any

from e2b_code_interpreter.code_interpreter_async import AsyncSandbox

from agent.errors import SandboxError, SandboxGoneError, SandboxUnreachableError
from agent.sandbox.e2b.bounds import BoundedSandbox, Said
from agent.sandbox.e2b.errors import translated
from agent.sandbox.e2b.inside import END_TREE, TAILS
from agent.sandbox.e2b.streams import Streams

logger = logging.getLogger(__name__)

TAG = "AGENT_COMMAND"
"""The variable whose value marks the processes of one command."""

_LIMIT_S = 15
"""Of the request that ends a command's processes; within the margin that every lease keeps."""
_PATIENCE_S = 5.0
"""How long that request is sent again: a cancelled run waits for it."""
_ASKED_AGAIN_S = (0.0, 0.2, 0.5)
"""Pauses before each question whether a sandbox still lives."""
_PATIENCE = 10
"""How long a command is waited for that may only be starting, in tenths of a second."""


def new_tag() -> str:
    """Return a mark that no other command carries."""
    return secrets.token_hex(16)


async def end_tree(
    sandbox: BoundedSandbox, tag: str, pid: int | None, streams: Streams | None = None
) -> bool:
    """Kill every process of a command.

    E2B's daemon kills at a limit only the process it started, and a dropped stream leaves even that running.

    Args:
        sandbox: where the command runs.
        tag: the command's mark.
        pid: its first process, None where the start was never confirmed: then it is waited for a second.
        streams: takes in the tails of what the command printed, of which only heads were passed on.

    Returns:
        Whether the sandbox says that nothing is left of it.

    Raises:
        SandboxGoneError: the sandbox is no more, and the command with it.
    """
    given = f"tag={TAG}={tag} leader={pid or 'none'} patience={0 if pid else _PATIENCE}\n"
    script = given + END_TREE
    if streams:
        script += f"base={streams.base} nonce={streams.nonce} half={streams.passed_bytes // 2}\n{TAILS}"
    script += "\nexit $left"

    async def end() -> Said:
        with translated():
            return await sandbox.run_script(script, timeout_s=_LIMIT_S)

    try:
        said = await sandbox.retries.answered(end, patience_s=_PATIENCE_S)
        if said.exit_code:
            raise SandboxError(f"ending it failed: {said.stderr.strip()[-300:]}")
        if streams:
            await streams.stdout(said.stdout)
            await streams.stderr(said.stderr)
    except SandboxGoneError:
        raise
    except SandboxError as exc:
        logger.warning("a command in sandbox %s may still be running: %s", sandbox.sandbox_id, exc)
        return False
    return True


async def certain(sandbox: AsyncSandbox, said: SandboxError) -> SandboxError:
    """Return what a broken request means: asked, the service may say that the sandbox is gone.

    With `get_info`, which wakes no paused sandbox; several times, since a service learns of a death after
    the connections into the sandbox do.
    """
    if isinstance(said, SandboxUnreachableError):
        for pause_s in _ASKED_AGAIN_S:
            await asyncio.sleep(pause_s)
            try:
                with translated():
                    await sandbox.get_info()
            except SandboxGoneError as gone:
                return gone
            except SandboxError:
                return said
    return said


async def to_its_end(work: Coroutine[Any, Any, Any]) -> None:
    """Await clean-up to its end, however often this task is cancelled meanwhile; it must be short."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            continue
