"""Running shell commands in the sandbox, to their end or in the background."""

import asyncio
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool

from agent.sandbox.live import box_of
from agent.tools.events import live_output
from agent.tools.limits import Limits, limit_of
from agent.tools.making import sandbox_tool
from agent.tools.paths import HOME
from agent.tools.results import background_text, command_text, started_text

MAX_WAIT_S = 60
"""How long one poll may wait for a command in the background."""


def shell_tool(limits: Limits | None = None, root: str = HOME) -> BaseTool:
    """Return the tool `run_command`, with its own limits.

    Args:
        limits: default `Limits()`.
        root: the folder in the sandbox that commands start in.
    """
    limits = limits or Limits()

    @sandbox_tool(artifact=True)
    async def run_command(
        command: str,
        runtime: ToolRuntime[Any, Any],
        cwd: str = ".",
        env: dict[str, str] | None = None,
        timeout_s: int | None = None,
    ) -> tuple[str, Any]:
        """Run a command line in bash, in the work folder. Each call is a shell of its own.

        Returns the exit code, stdout and stderr. Check the exit code before you go on. Nothing can be typed
        in.

        Args:
            command: The command line, such as `python -m pytest -q tests/test_api.py`.
            cwd: The folder to run it in, relative to the work folder.
            env: Environment variables for this command.
            timeout_s: A limit in seconds, shorter than the usual one.
        """
        _refuse_unusable(command, env)
        box = box_of(runtime)
        usual_s = box.policy.command_timeout_s if box.policy else limits.command_timeout_s
        limit_s = limit_of(timeout_s, usual_s)
        async with live_output(runtime, "run_command") as on_output:
            result = await box.run_command(
                command,
                timeout_s=limit_s,
                cwd=posixpath.join(root, cwd),
                envs=env,
                shown_bytes=limits.max_output_bytes,
                on_output=on_output,
            )
        facts = {
            "exit_code": result.exit_code,
            "timed_out": result.timed_out,
            "duration_s": round(result.duration_s, 3),
        }
        # In a thread: each character that was printed is looked at.
        return await asyncio.to_thread(command_text, result, limit_s, limits.max_output_bytes), facts

    return run_command


def background_tools(limits: Limits | None = None, root: str = HOME) -> list[BaseTool]:
    """Return the tools `start_command`, `poll_command` and `stop_command`.

    Args:
        limits: default `Limits()`; the time limits do not hold in the background, where a command may run as
            long as the sandbox lives.
        root: the folder in the sandbox that commands start in.
    """
    limits = limits or Limits()

    @sandbox_tool()
    async def start_command(
        command: str, runtime: ToolRuntime[Any, Any], cwd: str = ".", env: dict[str, str] | None = None
    ) -> str:
        """Start a command in the background, such as a server or a long job, and return its command_id.

        It runs on while you work on, at most until your work on this request ends.

        Args:
            command: The command line.
            cwd: The folder to run it in, relative to the work folder.
            env: Environment variables for this command.
        """
        _refuse_unusable(command, env)
        folder = posixpath.join(root, cwd)
        return started_text(await box_of(runtime).start_command(command, cwd=folder, envs=env))

    @sandbox_tool()
    async def poll_command(command_id: str, runtime: ToolRuntime[Any, Any], wait_s: int = 0) -> str:
        """Say whether a command in the background still runs, and what it printed since you last asked.

        Args:
            command_id: As start_command returned it.
            wait_s: How many seconds to wait for its end, at most 60.
        """
        box = box_of(runtime)
        async with live_output(runtime, "poll_command"):
            result = await box.poll_command(
                command_id, wait_s=max(0, min(wait_s, MAX_WAIT_S)), shown_bytes=limits.max_output_bytes
            )
        return await asyncio.to_thread(background_text, result, limits.max_output_bytes)

    @sandbox_tool()
    async def stop_command(command_id: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Stop a command in the background with all it started, and return its last words.

        Args:
            command_id: As start_command returned it.
        """
        result = await box_of(runtime).stop_command(command_id, shown_bytes=limits.max_output_bytes)
        return await asyncio.to_thread(background_text, result, limits.max_output_bytes)

    return [start_command, poll_command, stop_command]


run_command = shell_tool()
"""`run_command` in the sandbox's home folder, with the default limits."""
start_command, poll_command, stop_command = background_tools()
"""The tools for commands in the background, with the default limits."""


def _refuse_unusable(command: str, env: Mapping[str, str] | None) -> None:
    """Refuse what no process can be started with."""
    if "\0" in command or any("\0" in value for value in (env or {}).values()):
        raise OSError("a command and its environment cannot hold a NUL character; write it to a file instead")
    for name in env or {}:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise OSError(f"{name!r} is no name for an environment variable")
