"""Commands that run on in the background; the sandbox itself remembers them, so that any process may ask."""

import re
import secrets
from collections.abc import Mapping
from typing import Any

from agent.sandbox.e2b.answers import POLLED, STARTED
from agent.sandbox.e2b.bounds import BoundedSandbox
from agent.sandbox.e2b.calls import call
from agent.sandbox.e2b.endings import TAG
from agent.sandbox.e2b.inside import BACKGROUND, END_TREE
from agent.sandbox.e2b.streams import Streams
from agent.sandbox.provider import OUTPUT_FOLDER, BackgroundResult, Spooled

_LIMIT_S = 30


async def start(sandbox: BoundedSandbox, command: str, cwd: str | None, variables: Mapping[str, str]) -> str:
    """Start a command and return its id, which is also the mark that its processes carry."""
    command_id = secrets.token_hex(4)
    await call(
        sandbox,
        BACKGROUND,
        "start",
        timeout_s=_LIMIT_S,
        shape=STARTED,
        variables={**variables, TAG: command_id},
        cwd=cwd,
        base=f"{OUTPUT_FOLDER}/{command_id}",
        command=command,
    )
    return command_id


async def poll(
    sandbox: BoundedSandbox, command_id: str, wait_s: float, shown_bytes: int, *, stop: bool = False
) -> BackgroundResult:
    """Return what the command printed since the last time, and how it is doing."""
    if not re.fullmatch("[0-9a-f]{8}", command_id):
        raise FileNotFoundError(f"there is no command {command_id!r} in the background")
    streams = Streams(command_id, shown_bytes, None)
    try:
        said = await call(
            sandbox,
            BACKGROUND,
            "poll",
            timeout_s=wait_s + _LIMIT_S,
            shape=POLLED,
            before=f"tag={TAG}={command_id} leader=none patience=0\n{END_TREE}" if stop else "",
            base=streams.base,
            nonce=streams.nonce,
            wait_s=wait_s,
            pass_bytes=streams.passed_bytes,
            stopped=stop,
        )
    except FileNotFoundError as exc:
        raise FileNotFoundError(f"there is no command {command_id!r} in the background") from exc
    await streams.stdout(said["stdout"])
    await streams.stderr(said["stderr"])
    stdout, stderr, _ = streams.end()
    printed: Mapping[str, Any] = said["bytes"]
    spooled = {
        name: Spooled(f"{streams.base}.{name}", printed[name], printed[name])
        for name, text in (("stdout", stdout), ("stderr", stderr))
        if text
    }
    return BackgroundResult(
        command_id,
        said["running"],
        said["exit_code"],
        said["stopped"],
        stdout,
        stderr,
        said["duration_s"],
        spooled,
    )


async def stop(sandbox: BoundedSandbox, command_id: str, shown_bytes: int) -> BackgroundResult:
    """End the command with all it started, and return its last words."""
    return await poll(sandbox, command_id, 0, shown_bytes, stop=True)
