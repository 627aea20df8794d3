"""Running Python in the sandbox's kernel."""

from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, tool

from agent.sandbox.live import box_of
from agent.tools.events import output_events
from agent.tools.limits import Limits
from agent.tools.results import code_artifact, code_text, reported


def python_tool(limits: Limits | None = None) -> BaseTool:
    """Return the tool `run_python`, with its own limits."""
    limits = limits or Limits()

    @tool(parse_docstring=True, response_format="content_and_artifact")
    @reported(lambda words: (words, None))
    async def run_python(code: str, runtime: ToolRuntime[Any, Any]) -> tuple[str, Any]:
        """Run Python in a Jupyter kernel. Variables, imports and files stay for the next call.

        Returns what was printed, the value of the last expression, charts and tables that were displayed, or
        the error. Check for an error before you answer.

        Args:
            code: The Python code of one cell.
        """
        box = box_of(runtime)
        limit_s = box.policy.code_timeout_s if box.policy else limits.code_timeout_s
        events = output_events(runtime, "run_python")
        result = await box.run_code(code, timeout_s=limit_s, on_output=events)
        return code_text(result, limit_s, limits.max_output_bytes), code_artifact(result)

    return run_python


run_python = python_tool()
"""`run_python` with the default limits."""
