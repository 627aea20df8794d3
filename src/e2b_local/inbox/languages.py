"""The languages a kernel can be had for, and how each sets environment variables."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping

from .wire import OpError

_STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup.py")


def command(language: str) -> list[str]:
    """Return the command line of a kernel; `{connection_file}` is for Jupyter to fill in.

    Raises:
        OpError: no kernel for this language is installed.
    """
    if language == "python":
        return [
            sys.executable,
            "-m",
            "ipykernel_launcher",
            "-f",
            "{connection_file}",
            f"--IPKernelApp.exec_files={_STARTUP}",
            "--InteractiveShell.warn_venv=False",
            "--PlainTextFormatter.max_seq_length=0",
            "--HistoryManager.hist_file=:memory:",
        ]
    if language == "bash" and _installed("bash_kernel"):
        return [sys.executable, "-m", "bash_kernel", "-f", "{connection_file}"]
    raise OpError("internal", f"Failed to create context: no kernel for language '{language}' is installed")


def set_variables(language: str, variables: Mapping[str, str]) -> str:
    """Return code that sets environment variables, whatever their values hold."""
    if language == "bash":
        return "\n".join(f"export {key}={shlex.quote(value)}" for key, value in variables.items())
    return (
        "import os as _e2b_os, json as _e2b_json\n"
        f"_e2b_os.environ.update(_e2b_json.loads({json.dumps(variables)!r}))\n"
        "del _e2b_os, _e2b_json"
    )


def reset_variables(language: str, variables: Mapping[str, str], base: Mapping[str, str]) -> str:
    """Return code that puts variables back to `base`, or removes those it lacks."""
    kept = {key: base[key] for key in variables if key in base}
    gone = [key for key in variables if key not in base]
    if language == "bash":
        return "\n".join([set_variables(language, kept), *(f"unset {key}" for key in gone)])
    return (
        set_variables(language, kept)
        + "\nimport os as _e2b_os, json as _e2b_json\n"
        + f"[_e2b_os.environ.pop(_e2b_key, None) for _e2b_key in _e2b_json.loads({json.dumps(gone)!r})]\n"
        + "del _e2b_os, _e2b_json"
    )


def _installed(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None
