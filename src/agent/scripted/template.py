"""Templates in a script: `{{value}}` and `{{value|filter}}`."""

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

FILTERS: dict[str, Callable[[str], str]] = {"py": repr, "sh": shlex.quote}
TEMPLATE = re.compile(r"\{\{\s*(\w+)\s*(?:\|\s*(\w+)\s*)?\}\}")


def fill(value: Any, values: Mapping[str, str]) -> Any:
    """Fill the templates in a value, however deep; values are not searched for templates again."""
    if isinstance(value, str):
        return TEMPLATE.sub(lambda found: FILTERS.get(found[2], str)(values[found[1]]), value)
    if isinstance(value, dict):
        return {key: fill(inner, values) for key, inner in value.items()}
    return [fill(inner, values) for inner in value] if isinstance(value, list) else value


def used(value: Any) -> set[str]:
    """Return the names a template asks for, and refuse a filter that does not exist."""
    if isinstance(value, str):
        found = TEMPLATE.findall(value)
        check({name for _, name in found if name} - FILTERS.keys(), "filter")
        return {name for name, _ in found}
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(used, inner))


def check(unknown: set[str], where: str) -> None:
    """Refuse names that nothing has.

    Raises:
        ValueError: there are some; names them and where they stand.
    """
    if unknown:
        raise ValueError(f"{where}: nothing here is called {', '.join(sorted(unknown))}")
