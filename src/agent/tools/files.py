"""Working on files in the sandbox, confined to the work folder.

Each call is one request: a small program in the sandbox follows links, refuses what leads out of the folder,
and hands back no more than is shown.
"""

import base64
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool

from agent.sandbox.live import box_of
from agent.sandbox.provider import OUTPUT_FOLDER
from agent.tools import file_results as words
from agent.tools.limits import Limits
from agent.tools.making import sandbox_tool
from agent.tools.paths import HOME, confined, shown

MAX_ENTRIES = 2_000  # no more are taken from an answer (sandbox/e2b/answers.py)
"""Of a listing or a search, before the budget in bytes."""
FRAME_BYTES = 512
"""Kept of the budget for what stands around a file's text."""
SEEN = {"image/png", "image/jpeg", "image/gif", "image/webp"}


def file_tools(limits: Limits | None = None, root: str = HOME) -> list[BaseTool]:
    """Return the tools that read, write, edit, list, find, search and delete files, confined to a folder.

    Args:
        limits: default `Limits()`.
        root: the folder in the sandbox that paths are relative to and may not leave. Beside it only the files
            that hold long output may be read.
    """
    limits = limits or Limits()
    return [*_reading_tools(limits, root), *_writing_tools(root), *_searching_tools(limits, root)]


def _reading_tools(limits: Limits, root: str) -> list[BaseTool]:
    @sandbox_tool(artifact=True)
    async def read_file(
        path: str,
        runtime: ToolRuntime[Any, Any],
        start_line: int = 1,
        end_line: int | None = None,
        start_byte: int | None = None,
    ) -> tuple[str, Any]:
        """Read a text file, or look at an image. A long file is shown by pages.

        Args:
            path: The file's path, relative to the work folder.
            start_line: The first line to show.
            end_line: The last line to show.
            start_byte: Instead of lines, the byte to start at; for files with very long lines.
        """
        whole = confined(path, root, OUTPUT_FOLDER)
        answer = await _asked(
            runtime,
            "read",
            path=whole,
            root=root,
            also=[OUTPUT_FOLDER],
            first=max(start_line, 1),
            last=end_line,
            start=start_byte,
            room=limits.max_output_bytes - FRAME_BYTES,
        )
        said = words.file_text(shown(whole, root), answer, limits.max_output_bytes)
        image = answer["kind"] == "image"
        return said, {"results": [{answer["mime"]: answer["data"]}]} if image else None

    @sandbox_tool()
    async def list_files(runtime: ToolRuntime[Any, Any], path: str = ".") -> str:
        """List a folder; names of folders end with a slash, of links with @.

        Args:
            path: The folder's path, relative to the work folder.
        """
        whole = confined(path, root, OUTPUT_FOLDER)
        answer = await _asked(runtime, "list", path=whole, root=root, also=[OUTPUT_FOLDER], most=MAX_ENTRIES)
        return words.listing_text(answer, limits.max_output_bytes - FRAME_BYTES)

    return [read_file, list_files]


def _writing_tools(root: str) -> list[BaseTool]:
    @sandbox_tool()
    async def write_file(path: str, content: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Write a text file, replacing it if it exists. Folders are made as needed.

        One whose lines end with \\r\\n keeps that, and its encoding, unless the new text says otherwise.

        Args:
            path: The file's path, relative to the work folder.
            content: The whole new text of the file.
        """
        whole = confined(path, root)
        encoded = base64.b64encode(content.encode("utf-8", "replace")).decode()
        answer = await _asked(runtime, "write", path=whole, root=root, data=encoded)
        return words.written_text(shown(whole, root), answer)

    @sandbox_tool()
    async def edit_file(path: str, old: str, new: str, runtime: ToolRuntime[Any, Any], count: int = 1) -> str:
        """Replace a text in a file. The old text must occur exactly as often as you say.

        Args:
            path: The file's path, relative to the work folder.
            old: The text to replace, exactly as it is in the file, with enough around it to be unique.
            new: The text to put in its place.
            count: How often the old text occurs.
        """
        if not old:
            raise OSError("the old text is empty; write_file makes a file")
        whole = confined(path, root)
        answer = await _asked(runtime, "edit", path=whole, root=root, old=old, new=new, count=count)
        return words.edit_text(shown(whole, root), answer, count)

    @sandbox_tool()
    async def delete_file(path: str, runtime: ToolRuntime[Any, Any], recursive: bool = False) -> str:
        """Delete a file, or a folder.

        Args:
            path: The path, relative to the work folder.
            recursive: Whether a folder is deleted with all that is in it.
        """
        whole = confined(path, root)
        answer = await _asked(runtime, "delete", path=whole, root=root, recursive=recursive)
        return words.deleted_text(shown(whole, root), answer)

    return [write_file, edit_file, delete_file]


def _searching_tools(limits: Limits, root: str) -> list[BaseTool]:
    @sandbox_tool()
    async def glob(pattern: str, runtime: ToolRuntime[Any, Any], path: str = ".") -> str:
        """Find files and folders by name.

        Args:
            pattern: Such as `*.py` (at any depth), `src/*.py`, `src/**/test_*.py`, `src/` (all below it).
            path: The folder to search, relative to the work folder.
        """
        whole = confined(path, root)
        answer = await _asked(runtime, "find", path=whole, root=root, pattern=pattern, most=MAX_ENTRIES)
        return words.found_text(answer, limits.max_output_bytes - FRAME_BYTES)

    @sandbox_tool()
    async def grep(
        pattern: str,
        runtime: ToolRuntime[Any, Any],
        path: str = ".",
        include: str | None = None,
        ignore_case: bool = False,
    ) -> str:
        """Search files for lines that match a regular expression.

        Args:
            pattern: A regular expression, as Python has them.
            path: The file or folder to search, relative to the work folder.
            include: Only files whose path matches this, such as `*.py`.
            ignore_case: Whether upper and lower case are the same.
        """
        whole = confined(path, root, OUTPUT_FOLDER)
        room = limits.max_output_bytes - FRAME_BYTES
        answer = await _asked(
            runtime,
            "search",
            path=whole,
            root=root,
            also=[OUTPUT_FOLDER],
            pattern=pattern,
            only=include,
            ignore_case=ignore_case,
            most=MAX_ENTRIES,
            room=room,
        )
        return words.matches_text(shown(whole, root), answer, room)

    return [glob, grep]


async def _asked(runtime: Any, operation: str, **request: Any) -> dict[str, Any]:
    """Do an operation; what it fails at is told with the path as the model knows it."""
    try:
        return await box_of(runtime).work_on_files(operation, **request)
    except OSError as exc:
        path = words.named(shown(request["path"], request["root"]))
        raise type(exc)(f"{path}: {exc}") from exc
    except ValueError as exc:
        raise OSError(str(exc)) from exc


read_file, list_files, write_file, edit_file, delete_file, glob, grep = file_tools()
"""The file tools in the sandbox's home folder, with the default limits."""
