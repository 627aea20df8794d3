"""Reading, writing and listing files in the sandbox."""

from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, tool

from agent.sandbox.live import box_of
from agent.tools.limits import Limits
from agent.tools.paths import HOME, confined, shown
from agent.tools.results import file_text, listing_text, reported


def file_tools(limits: Limits | None = None, root: str = HOME) -> list[BaseTool]:
    """Return the tools `read_file`, `write_file` and `list_files`, confined to a folder.

    Args:
        limits: default `Limits()`.
        root: the folder in the sandbox that paths are relative to and may not leave.
    """
    limits = limits or Limits()

    @tool(parse_docstring=True)
    @reported(str)
    async def read_file(path: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Read a text file.

        Args:
            path: The file's path, relative to the work folder.
        """
        whole = confined(path, root)
        data = await box_of(runtime).read_file(whole)
        return file_text(shown(whole, root), data, limits.max_output_bytes)

    @tool(parse_docstring=True)
    @reported(str)
    async def write_file(path: str, content: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Write a text file, replacing it if it exists. Folders are made as needed.

        Args:
            path: The file's path, relative to the work folder.
            content: The whole new text of the file.
        """
        whole = confined(path, root)
        data = content.encode()
        await box_of(runtime).write_files({whole: data})
        return f"Wrote {len(data)} bytes to {shown(whole, root)}."

    @tool(parse_docstring=True)
    @reported(str)
    async def list_files(runtime: ToolRuntime[Any, Any], path: str = ".") -> str:
        """List a folder; names of folders end with a slash.

        Args:
            path: The folder's path, relative to the work folder.
        """
        whole = confined(path, root)
        entries = await box_of(runtime).list_files(whole)
        return listing_text([(shown(entry.path, root), entry) for entry in entries])

    return [read_file, write_file, list_files]


read_file, write_file, list_files = file_tools()
"""The file tools in the sandbox's home folder, with the default limits."""
