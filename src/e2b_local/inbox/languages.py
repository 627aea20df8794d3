"""The languages a kernel can be had for, and how each sets environment variables."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .wire import OpError

if TYPE_CHECKING:
    from jupyter_client.kernelspec import KernelSpec

_STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup.py")
_PYTHON_OPTIONS = (
    f"--IPKernelApp.exec_files={_STARTUP}",
    "--InteractiveShell.warn_venv=False",
    "--PlainTextFormatter.max_seq_length=0",
    "--HistoryManager.hist_file=:memory:",
)
_DENO_VARIABLES = {
    "NO_COLOR": "1",
    "DENO_NO_UPDATE_CHECK": "1",
    "DENO_UNSTABLE_BARE_NODE_BUILTINS": "1",  # so that `fs` means Node's module, as in E2B's kernel
}
_ALIASES = {"js": "javascript", "ts": "typescript"}
# Only folders of the template: a specification written by a program of the sandbox must not matter.
_SPECIFICATIONS = (
    "{prefix}/share/jupyter/kernels",
    "/usr/local/share/jupyter/kernels",
    "/usr/share/jupyter/kernels",
)


@dataclasses.dataclass(frozen=True)
class KernelKind:
    """How kernels of one language are started and reached."""

    specification: KernelSpec
    """The command, in which Jupyter fills in `{connection_file}`, and how a cell is interrupted."""
    tcp: bool = True
    """Reached on the loopback: only kernels made of ipykernel know ipc sockets."""
    orderly: bool = True
    """Tells the end of a cell after everything else: Deno's may tell it just before the cell's value."""


def named(language: object) -> str:
    """Return a language's one name: `js` is javascript, nothing is python."""
    name = str(language or "python").lower().strip()
    return _ALIASES.get(name, name)


def defaults() -> list[str]:
    """Return the languages whose default context is there from the start, as far as anybody can see."""
    return ["python", "javascript"] if _deno() else ["python"]


def kernel_kind(language: str) -> KernelKind:
    """Return how to start and reach the kernel of a language.

    Raises:
        OpError: no kernel for this language is installed.
    """
    from jupyter_client.kernelspec import KernelSpec

    if language == "python":
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", *_PYTHON_OPTIONS]
        return KernelKind(KernelSpec(argv=argv), tcp=False)
    if language == "bash" and _importable("bash_kernel"):
        argv = [sys.executable, "-m", "bash_kernel", "-f", "{connection_file}"]
        return KernelKind(KernelSpec(argv=argv), tcp=False)
    if language in ("javascript", "typescript") and (deno := _deno()):
        argv = [deno, "jupyter", "--kernel", "--conn", "{connection_file}"]
        # One kernel reads both. A signal would end it.
        specification = KernelSpec(argv=argv, interrupt_mode="message", env=_DENO_VARIABLES)
        return KernelKind(specification, orderly=False)
    if found := _installed(language):
        return KernelKind(found)
    raise OpError("internal", f"Failed to create context: no kernel for language '{language}' is installed")


def set_variables(language: str, variables: Mapping[str, str]) -> str:
    """Return code that sets environment variables, whatever their values hold."""
    if language == "python":
        return (
            "import os as _e2b_os, json as _e2b_json\n"
            f"_e2b_os.environ.update(_e2b_json.loads({json.dumps(variables)!r}))\n"
            "del _e2b_os, _e2b_json"
        )
    one = _SET.get(language)
    return "\n".join(one(key, value) for key, value in variables.items()) if one else ""


def reset_variables(language: str, variables: Mapping[str, str], base: Mapping[str, str]) -> str:
    """Return code that puts variables back to `base`, or removes those it lacks."""
    kept = {key: base[key] for key in variables if key in base}
    gone = [key for key in variables if key not in base]
    if language == "python":
        return (
            set_variables(language, kept)
            + "\nimport os as _e2b_os, json as _e2b_json\n"
            + f"[_e2b_os.environ.pop(_e2b_key, None) for _e2b_key in _e2b_json.loads({json.dumps(gone)!r})]\n"
            + "del _e2b_os, _e2b_json"
        )
    one = _REMOVE.get(language)
    return "\n".join([set_variables(language, kept), *(map(one, gone) if one else ())])


def _text(value: str) -> str:
    # JSON's escapes are those of JavaScript, R and Java too.
    return json.dumps(value, ensure_ascii=False)


def _script_set(key: str, value: str) -> str:
    return f"process.env[{_text(key)}] = {_text(value)};"


def _script_remove(key: str) -> str:
    return f"delete process.env[{_text(key)}];"


_SET: dict[str, Callable[[str, str], str]] = {
    "bash": lambda key, value: f"export {key}={shlex.quote(value)}",
    "javascript": _script_set,
    "typescript": _script_set,
    "r": lambda key, value: f"do.call(Sys.setenv, setNames(list({_text(value)}), {_text(key)}))",
    # A program cannot change its own environment there: E2B sets system properties.
    "java": lambda key, value: f"System.setProperty({_text(key)}, {_text(value)});",
}
_REMOVE: dict[str, Callable[[str], str]] = {
    "bash": lambda key: f"unset {key}",
    "javascript": _script_remove,
    "typescript": _script_remove,
    "r": lambda key: f"Sys.unsetenv({_text(key)})",
    "java": lambda key: f"System.clearProperty({_text(key)});",
}


def _deno() -> str | None:
    return shutil.which("deno", path=os.environ.get("PATH"))


def _importable(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None


def _installed(language: str) -> KernelSpec | None:
    from jupyter_client.kernelspec import KernelSpec

    for pattern in _SPECIFICATIONS:
        folder = pattern.format(prefix=sys.prefix)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            try:
                found = KernelSpec.from_resource_dir(os.path.join(folder, name))
            except (OSError, ValueError):
                continue
            if str(found.language).lower() == language:
                return found
    return None
