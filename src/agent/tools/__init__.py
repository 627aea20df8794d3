"""What a model can do in a sandbox, and how results are worded for it."""

from agent.tools.files import (
    delete_file,
    edit_file,
    file_tools,
    glob,
    grep,
    list_files,
    read_file,
    write_file,
)
from agent.tools.limits import Limits
from agent.tools.python import python_tool, run_python
from agent.tools.shell import (
    background_tools,
    poll_command,
    run_command,
    shell_tool,
    start_command,
    stop_command,
)

__all__ = [
    "Limits",
    "background_tools",
    "delete_file",
    "edit_file",
    "file_tools",
    "glob",
    "grep",
    "list_files",
    "poll_command",
    "python_tool",
    "read_file",
    "run_command",
    "run_python",
    "shell_tool",
    "start_command",
    "stop_command",
    "write_file",
]
