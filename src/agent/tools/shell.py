"""Running shell commands in the sandbox."""

from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, tool

from agent.sandbox.live import box_of
from agent.tools.events import output_events
from agent.tools.limits import Limits
from agent.tools.paths import HOME
from agent.tools.results import command_text, reported


def shell_tool(limits: Limits | None = None, root: str = HOME) -> BaseTool:
    """Return the tool `run_command`, with its own limits.

    Args:
        limits: default `Limits()`.
        root: the folder in the sandbox that commands start in.
    """
    limits = limits or Limits()

    @tool(parse_docstring=True)
    @reported(str)
    async def run_command(command: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Run a command line in bash, in the work folder. Each call is a shell of its own.

        Returns the exit code, stdout and stderr. Check the exit code before you go on.

        Args:
            command: The command line, such as `python -m pytest -q tests/test_api.py`.
        """
        box = box_of(runtime)
        limit_s = box.policy.command_timeout_s if box.policy else limits.command_timeout_s
        result = await box.run_command(
            command,
            timeout_s=limit_s,
            cwd=root,
            on_output=output_events(runtime, "run_command"),
        )
        return command_text(result, limit_s, limits.max_output_bytes)

    return run_command


run_command = shell_tool()
"""`run_command` in the sandbox's home folder, with the default limits."""
