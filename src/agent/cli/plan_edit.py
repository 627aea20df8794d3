"""Let a human change a plan in their editor, as YAML."""

from collections.abc import Mapping
from typing import Any

import click
import yaml

from agent.cli.screen import Screen

_STEP = ("file", "change", "reason")
_HEAD = """\
# Change, remove, add or reorder steps, then save and leave the editor.
# Leave without saving, or empty the file, to go back to the question.
"""


def edited(screen: Screen, plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """Open a plan in $VISUAL or $EDITOR until what comes back is a plan.

    Args:
        screen: says what is wrong with the text.
        plan: as the graph sent it.

    Returns:
        The changed plan; None when the human left without saving.
    """
    text = _HEAD + as_yaml(plan)
    while True:
        returned = click.edit(text, extension=".yaml")
        if returned is None or not returned.strip():
            return None
        try:
            return from_yaml(returned)
        except ValueError as exc:
            screen.error(f"  This is no plan: {exc}")
            if screen.ask("  Edit it again? [y]es, anything else goes back: ").lower() not in {"y", "yes"}:
                return None
            text = returned


def as_yaml(plan: Mapping[str, Any]) -> str:
    """Return a plan as YAML that is pleasant to edit."""
    return yaml.safe_dump(dict(plan), sort_keys=False, allow_unicode=True, width=100)


def from_yaml(text: str) -> dict[str, Any]:
    """Read a plan; the graph checks it once more.

    Raises:
        ValueError: it has not the form of a plan; says where.
    """
    try:
        plan = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ValueError(str(exc)) from exc
    if not isinstance(plan, dict) or not isinstance(plan.get("steps"), list) or not plan["steps"]:
        raise ValueError("it needs `summary` and at least one step under `steps`")
    for number, step in enumerate(plan["steps"], start=1):
        if not isinstance(step, dict) or any(not isinstance(step.get(key), str) for key in _STEP):
            raise ValueError(f"step {number} needs `file`, `change` and `reason`, each a text")
    return plan
