"""Choosing which of the project's files the planner is shown."""

from collections.abc import Mapping
from typing import Any

from agent.repair.baseline import Baseline
from agent.repair.changes import readable
from agent.repair.prompts import MAX_FILE_BYTES, MAX_FILES_BYTES, by_relevance
from agent.repair.record import settle, shown
from agent.repair.tree import printable
from agent.repair.workspace import Workspace


async def texts_to_show(
    work: Workspace, baseline: Baseline, state: Mapping[str, Any], output: str
) -> tuple[list[str], dict[str, str]]:
    """Return the names of the project's files, and the texts of the most relevant as they are now.

    Args:
        output: what the failing run printed; files it names come first.
    """
    await settle(work, baseline, state)
    tree = shown(baseline, (await work.look(baseline.scope)).tree, state)
    names = [path for path in tree if path == printable(path)]
    chosen, room = [], MAX_FILES_BYTES
    for path in by_relevance(names, output):
        entry = tree[path]
        if entry.link or entry.size_bytes > 10 * MAX_FILE_BYTES:
            continue
        room -= min(entry.size_bytes, MAX_FILE_BYTES)
        if room < 0:
            break
        chosen.append(path)
    contents = await work.read(chosen)
    return names, {path: text[1] for path, data in contents.items() if (text := readable(data))}
