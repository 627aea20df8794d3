"""The project that a command works for: its langgraph.json, and the `.env` beside it.

That is the checkout that this package is imported from, or the folder that `--project` names. The current
folder is somebody's word: its langgraph.json names code that `serve` would run, its `.env` where keys go.
"""

import io
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.cli.processes import LocalServerError

if TYPE_CHECKING:
    from agent.settings import Settings

MAX_BYTES = 1_000_000
"""Of a langgraph.json, and of a `.env`."""
_CONFIG = "langgraph.json"
_chosen: Path | None = None


def choose(folder: Path) -> None:
    """Take a folder for the project, for the rest of this process.

    Raises:
        LocalServerError: it has no langgraph.json.
    """
    global _chosen
    if not (folder / _CONFIG).is_file():
        raise LocalServerError(f"{folder} has no {_CONFIG}: --project names the folder of one")
    _chosen = folder.resolve()


def settings_here(server: str | None = None, *, services: Collection[str] = ()) -> "Settings":
    """Return the settings of a command: the process's variables before those of the project's `.env`.

    Args:
        server: the LangGraph server's address, if it was typed: a key from another place is not for it.
        services: the first words of variables, such as E2B, whose keys the command sends.

    Raises:
        SettingsError: a value cannot be used, or a key would go to an address from another place.
    """
    from agent.errors import SettingsError
    from agent.settings import Settings

    try:
        config = find_config()
    except LocalServerError:  # the package is not imported from a checkout
        return Settings.from_env()
    try:
        file = dotenv(config)
    except LocalServerError as exc:
        raise SettingsError(str(exc)) from exc
    if services:
        Settings.refuse_mixed_sources(file, services)
    return Settings.from_env(defaults=file, server=server)


def find_config() -> Path:
    """Return the project's langgraph.json; what the current folder holds does not count.

    Raises:
        LocalServerError: there is none.
    """
    if _chosen is not None:
        return _chosen / _CONFIG
    source = Path(__file__).resolve().parents[2]
    config = source.parent / _CONFIG
    # In an installation that was copied, what lies around the package is not the project's.
    if source.name == "src" and config.is_file():
        return config
    raise LocalServerError(
        "This installation comes from no checkout: name the folder of your langgraph.json, whose code is run "
        "and whose .env is read, by `sandbox-agent --project FOLDER …`."
    )


def absolute_config(config: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Return a langgraph.json whose relative paths are absolute, without its `env`."""
    made: dict[str, Any] = {key: _absolute(value, root) for key, value in config.items() if key != "env"}
    return made


def _absolute(value: Any, root: Path) -> Any:
    if isinstance(value, Mapping):
        return {key: _absolute(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [_absolute(item, root) for item in value]
    if isinstance(value, str) and (value == "." or value.startswith(("./", "../"))):
        return str((root / value).resolve()) if ":" not in value else _absolute_object(value, root)
    return value


def _absolute_object(value: str, root: Path) -> str:
    path, _, name = value.rpartition(":")
    return f"{(root / path).resolve()}:{name}"


def dotenv(config: Path) -> dict[str, str]:
    """Return the variables of the file that a langgraph.json names as `env`, without the empty ones.

    `langgraph dev` would let an empty value there hide a variable that is set: a copied `.env.example` has
    many. Values are taken as they stand: `${NAME}` in one is not replaced by a variable of this process.

    Raises:
        LocalServerError: one of the two files cannot be read.
    """
    try:
        found = _variables(config)
        if odd := [name for name, value in found.items() if "\0" in name + value or "=" in name]:
            raise ValueError(f"{odd[0]!r} has what no variable can have")
        return found
    except (OSError, ValueError, RecursionError) as exc:
        raise LocalServerError(f"{config}, or the file it names as `env`, cannot be read: {exc}") from exc


def _variables(config: Path) -> dict[str, str]:
    said = json.loads(_text(config))
    named = said.get("env") if isinstance(said, dict) else None
    if isinstance(named, Mapping):
        return {str(key): str(value) for key, value in named.items() if value}
    file = config.parent / str(named or ".env")
    if not file.exists() or file.is_dir():  # a virtual environment may be called so
        return {}
    from dotenv import dotenv_values

    read = dotenv_values(stream=io.StringIO(_text(file)), interpolate=False)
    return {key: value for key, value in read.items() if value}


def _text(file: Path) -> str:
    """Return a file's text; a pipe would be waited for, and a device read for ever.

    Raises:
        ValueError: it is no ordinary file, or a long one.
        OSError: it cannot be read.
    """
    if not file.is_file():
        raise ValueError(f"{file.name} is no ordinary file")
    with file.open("rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{file.name} has more than {MAX_BYTES} bytes")
    return data.decode()
