"""What a model can do in a sandbox, and how results are worded for it."""

from agent.tools.files import file_tools, list_files, read_file, write_file
from agent.tools.limits import Limits
from agent.tools.python import python_tool, run_python
from agent.tools.shell import run_command, shell_tool

__all__ = [
    "Limits",
    "file_tools",
    "list_files",
    "python_tool",
    "read_file",
    "run_command",
    "run_python",
    "shell_tool",
    "write_file",
]
