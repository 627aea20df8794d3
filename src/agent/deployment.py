"""The name that marks this deployment's sandboxes."""

import asyncio
import secrets
from pathlib import Path

from agent.settings import Settings

KEPT_IN = Path(".langgraph_api/deployment")
"""Beside the development server's own data, relative to the folder it was started in."""


async def deployment_name(settings: Settings, kept_in: Path = KEPT_IN) -> str:
    """Return the deployment's name: the one that is set, or a random one made once and kept in a file.

    A random name suits one machine. Where several processes serve one deployment from different disks, set
    DEPLOYMENT: each would otherwise take the others' sandboxes for foreign ones.
    """
    if settings.deployment:
        return settings.deployment
    return await asyncio.to_thread(_kept_name, kept_in)


def _kept_name(kept_in: Path) -> str:
    fresh = f"dev-{secrets.token_hex(8)}"
    kept_in.parent.mkdir(parents=True, exist_ok=True)
    try:
        # "x": of several processes that start at once, one writes and the others read what it wrote.
        with kept_in.open("x") as file:
            file.write(fresh)
    except FileExistsError:
        return kept_in.read_text().strip() or fresh
    return fresh
