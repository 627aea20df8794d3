"""Running Python in the sandbox's kernel."""

import asyncio
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool

from agent.sandbox.live import box_of
from agent.tools.events import live_output
from agent.tools.limits import Limits, limit_of
from agent.tools.making import sandbox_tool
from agent.tools.order import place_of
from agent.tools.results import code_artifact, code_text


def python_tool(limits: Limits | None = None) -> BaseTool:
    """Return the tool `run_python`, with its own limits."""
    limits = limits or Limits()

    @sandbox_tool(artifact=True)
    async def run_python(
        code: str, runtime: ToolRuntime[Any, Any], timeout_s: int | None = None
    ) -> tuple[str, Any]:
        """Run Python in a Jupyter kernel. Variables, imports and files stay for the next call.

        Returns what was printed, the value of the last expression, charts and tables that were displayed, or
        the error. Check for an error before you answer. Nothing can be typed in: `input()` fails.

        Args:
            code: The Python code of one cell.
            timeout_s: A limit in seconds, shorter than the usual one.
        """
        box = box_of(runtime)
        limit_s = limit_of(timeout_s, box.policy.code_timeout_s if box.policy else limits.code_timeout_s)
        place = place_of(runtime, "run_python")
        async with live_output(runtime, "run_python") as on_output, box.turns.turn(place.own, place.after):
            result = await box.run_code(
                code, timeout_s=limit_s, shown_bytes=limits.max_output_bytes, on_output=on_output
            )
        # In a thread: each character that was printed is looked at.
        text = await asyncio.to_thread(code_text, result, limit_s, limits.max_output_bytes)
        return text, code_artifact(result)

    return run_python


run_python = python_tool()
"""`run_python` with the default limits."""
