"""This project's langgraph.json, and the `.env` beside it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.cli.processes import LocalServerError

if TYPE_CHECKING:
    from agent.settings import Settings


def settings_here() -> "Settings":
    """Return the settings of a command: the process's variables before those of the project's `.env`.

    Raises:
        SettingsError: a value cannot be used.
    """
    from agent.settings import Settings

    try:
        return Settings.from_env(defaults=dotenv(find_config(Path.cwd())))
    except (LocalServerError, OSError):  # not in a checkout, or in a folder that was deleted
        return Settings.from_env()


def find_config(start: Path) -> Path:
    """Return this project's langgraph.json: above `start`, or where the package is installed from.

    Another project's file is passed over.

    Raises:
        LocalServerError: there is none.
    """
    beside_package = Path(__file__).resolve().parents[3]
    for folder in (start, *start.parents, beside_package):
        candidate = folder / "langgraph.json"
        if candidate.is_file() and '"plan_execute"' in candidate.read_text(
            encoding="utf-8", errors="replace"
        ):
            return candidate
    raise LocalServerError(
        "There is no langgraph.json of this project here or above. Change to a checkout of it."
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
    many.
    """
    named = json.loads(config.read_text(encoding="utf-8")).get("env")
    if isinstance(named, Mapping):
        return {str(key): str(value) for key, value in named.items() if value}
    file = config.parent / str(named or ".env")
    if not file.is_file():
        return {}
    from dotenv import dotenv_values

    return {key: value for key, value in dotenv_values(file).items() if value}
