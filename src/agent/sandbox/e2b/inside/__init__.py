"""Programs that run inside the sandbox, sent there as text with each call that needs them.

They lie here as files, so that they are read, checked and tested as all other code is. Nothing is installed
in the sandbox; the Python ones need its template to have `python3`, which a code interpreter does.
"""

import hashlib
import re
from importlib import resources

_IMPORTS = re.compile(
    rf"^from (__future__|agent\.globs|{re.escape(__name__)}\.\w+) import (\([^)]*\)|.*)$", re.MULTILINE
)
"""Of what a program brings along itself."""

_GLOBS = resources.files("agent") / "globs.py"


def _text(name: str) -> str:
    return (resources.files(__name__) / name).read_text()


def _python(*names: str) -> str:
    """Return modules of this package, and the one of globs, as one program."""
    texts = (_GLOBS.read_text() if name == "globs" else _text(f"{name}.py") for name in names)
    joined = "\n".join(_IMPORTS.sub("", text) for text in texts)
    return f"from __future__ import annotations\n{joined}"


PROGRAM = "AGENT_PROGRAM"
"""The variable that a program's text comes in: as an argument it would stand in every list of processes."""
RUN_PROGRAM = f'import os;exec(os.environ.pop("{PROGRAM}"))'
"""What Python is told to run it with."""

END_TREE = _text("end_tree.sh")
"""Bash that ends every process of a command; its head says which variables it needs."""
COMMAND = _python("spool", "command")
"""Runs the command line in `AGENT_LINE`; arguments as those of its `main`."""
TAILS = _text("tails.sh")
"""Bash that prints the tails of what an ended command printed; its head says which variables it needs."""
CELLS = _python("spool", "following", "cells")
"""Hooks a kernel; run as the module `CELLS_MODULE`, which then has `cells.run` and `cells.run_async`."""
CELLS_MODULE = f"agent_cells_{hashlib.sha256(CELLS.encode()).hexdigest()[:8]}"
FILES = _python("spool", "calls", "globs", "encodings", "entries", "search", "files")
"""Works on files; the request is JSON in the environment, the answer on standard output."""
BACKGROUND = _python("spool", "calls", "background")
"""Starts and polls commands in the background; called as `FILES` is."""
