"""Which pytest plugins of this Python are no part of the template, and how they are kept out of a sandbox.

pytest loads each plugin that an installed package declares. Of those here some came only with this
server's own package (langsmith's takes 2 s to import at each start of pytest), and what they change in a
project's tests would be missing in the cloud. What its user has installed beside it is offered, and what
E2B's template has too.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import pathlib
import re
from collections.abc import Iterable

_GROUP = "pytest11"
_SERVER = "langgraph-e2b-agent"
# What the template offers to programs, and anyio, which E2B's has by its Jupyter server.
_OFFERED = ("pytest", "ipykernel", "jupyter-client", "numpy", "pandas", "matplotlib", "anyio")
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^]]*)\])?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)""")
_HEAD = re.compile(r"^\s*\[([^]]*)\]\s*$")


@dataclasses.dataclass(frozen=True)
class Plugins:
    """The plugins that one installed package declares, and shall not declare in a sandbox."""

    names: tuple[str, ...]
    declared_in: pathlib.Path
    without: str
    """The text of that file without them."""


def not_offered(server: str = _SERVER) -> list[Plugins]:
    """Return the plugins that came with the server's package alone; none where it is not installed."""
    ours = _closure([(server, _server_extras(server))]) - _closure((name, ()) for name in _OFFERED)
    found = []
    for distribution in importlib.metadata.distributions():
        names = tuple(each.name for each in distribution.entry_points if each.group == _GROUP)
        folder = getattr(distribution, "_path", None)  # there is no public word for it
        if names and isinstance(folder, pathlib.Path) and _normal(distribution.metadata["Name"]) in ours:
            path = folder / "entry_points.txt"
            found.append(Plugins(names, path, _without_group(path.read_text())))
    return found


def _server_extras(server: str) -> tuple[str, ...]:
    """Return the extras that belong to the server: where it is worked on, its development tools too."""
    try:
        origin = importlib.metadata.distribution(server).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return ()
    editable = json.loads(origin or "{}").get("dir_info", {}).get("editable", False)
    return ("local", "dev") if editable else ("local",)


def _closure(wanted: Iterable[tuple[str, Iterable[str]]]) -> set[str]:
    """Return the names of packages and of all that they require, as far as it is installed."""
    ahead = [(_normal(name), frozenset(extras)) for name, extras in wanted]
    seen: set[tuple[str, frozenset[str]]] = set()
    while ahead:
        name, extras = each = ahead.pop()
        if each in seen:
            continue
        seen.add(each)
        try:
            required = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for line in required:
            named, only_for = _NAME.match(line), _EXTRA.search(line)
            if named and (only_for is None or only_for[1] in extras):
                more = frozenset(part.strip() for part in (named[2] or "").split(",") if part.strip())
                ahead.append((_normal(named[1]), more))
    return {name for name, _ in seen}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _without_group(text: str) -> str:
    kept, group = [], ""
    for line in text.splitlines():
        head = _HEAD.match(line)
        group = head[1].strip() if head else group
        if group != _GROUP:
            kept.append(line)
    return "\n".join(kept) + "\n"
