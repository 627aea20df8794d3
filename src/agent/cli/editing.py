"""Let a human change what a graph wants to do in their editor, as YAML."""

from collections.abc import Callable, Mapping
from typing import Any

import click
import yaml

from agent.cli.processes import absolute_path
from agent.cli.screen import Screen
from agent.cli.visible import visible

_STEP = ("file", "change", "reason")
_LEAVE = "# Leave without saving, or empty the file, to go back to the question.\n"
_PLAN = f"# Change, remove, add or reorder steps, then save and leave the editor.\n{_LEAVE}"
_CALL = f"# Change the arguments, then save and leave the editor.\n{_LEAVE}"

Arguments = dict[str, Any]


def edited_plan(screen: Screen, plan: Mapping[str, Any]) -> Arguments | None:
    """Open a plan in $VISUAL or $EDITOR until what comes back is a plan.

    Args:
        screen: says what is wrong with the text.
        plan: as the graph sent it.

    Returns:
        The changed plan; None when the human left without saving.
    """
    return _edited(screen, _PLAN + as_yaml(plan), plan_of)


def edited_call(screen: Screen, arguments: Mapping[str, Any]) -> Arguments | None:
    """Open a tool's arguments in $VISUAL or $EDITOR; see `edited_plan`."""
    return _edited(screen, _CALL + as_yaml(arguments), arguments_of)


def _edited(screen: Screen, text: str, read: Callable[[str], Arguments]) -> Arguments | None:
    while True:
        try:
            returned = _saved(text)
        except _EditorError as exc:
            screen.error(f"  {exc}. VISUAL or EDITOR names another editor.")
            return None
        if returned is None or not returned.strip():
            return None
        try:
            return read(returned)
        except ValueError as exc:
            screen.error(f"  This cannot be used: {exc}")
            if screen.ask("  Edit it again? [y]es, anything else goes back: ").lower() not in {"y", "yes"}:
                return None
            text = returned


class _EditorError(Exception):
    """The editor gave nothing that can be read; says why."""


def _saved(text: str) -> str | None:
    """Return what the editor made of a text; None when it was not saved."""
    try:
        # In the folder of a project: an editor that lies there is not the user's.
        saved = click.edit(text.encode(), env={"PATH": absolute_path()}, extension=".yaml")
        return None if saved is None else saved.decode("utf-8-sig").replace("\r\n", "\n")
    except click.ClickException as exc:
        raise _EditorError(exc.format_message().rstrip(".")) from exc
    except UnicodeDecodeError as exc:
        raise _EditorError("What was saved is not UTF-8 text") from exc
    except OSError as exc:
        raise _EditorError(f"The editor left no file to read: {exc.strerror}") from exc
    except ValueError as exc:  # of the command, which is split as a shell would
        raise _EditorError(f"The editor's command cannot be read: {exc}") from exc


def as_yaml(value: Mapping[str, Any]) -> str:
    """Return arguments as YAML that is pleasant to edit: texts of several lines as they are.

    Where one holds what hides or turns text, all that is not ASCII is written as YAML's escapes: an editor
    would obey it, too, and read back it is the same.
    """
    text = _dumped(value, readable=True)
    return text if visible(text) == text else _dumped(value, readable=False)


def _dumped(value: Mapping[str, Any], *, readable: bool) -> str:
    dumped = yaml.dump(dict(value), Dumper=_Dumper, sort_keys=False, allow_unicode=readable, width=100)
    return str(dumped)


def plan_of(text: str) -> Arguments:
    """Read a plan; the graph checks it once more.

    Raises:
        ValueError: it has not the form of a plan; says where.
    """
    plan = arguments_of(text)
    if not isinstance(plan.get("steps"), list) or not plan["steps"]:
        raise ValueError("it needs `summary` and at least one step under `steps`")
    for number, step in enumerate(plan["steps"], start=1):
        if not isinstance(step, dict) or any(not isinstance(step.get(key), str) for key in _STEP):
            raise ValueError(f"step {number} needs `file`, `change` and `reason`, each a text")
    return plan


def arguments_of(text: str) -> Arguments:
    """Read a tool's arguments; the tool checks them once more.

    Raises:
        ValueError: it is not YAML, or no mapping.
    """
    try:
        arguments = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ValueError(str(exc)) from exc
    if not isinstance(arguments, dict) or any(not isinstance(name, str) for name in arguments):
        raise ValueError("it needs a name and a value on each line")
    return arguments


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines in YAML's literal style."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
