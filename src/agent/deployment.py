"""The name that marks this deployment's sandboxes."""

import secrets
from pathlib import Path

from agent.kept import kept_word
from agent.settings import Settings

KEPT_IN = Path(".langgraph_api/deployment")
"""Beside the development server's own data, relative to the folder it was started in."""


async def deployment_name(settings: Settings, kept_in: Path = KEPT_IN) -> str:
    """Return the deployment's name: the one that is set, or a random one made once and kept in a file.

    A random name suits one machine. Where several processes serve one deployment from different disks, set
    DEPLOYMENT: each would otherwise take the others' sandboxes for foreign ones.
    """
    return settings.deployment or await kept_word(kept_in, lambda: f"dev-{secrets.token_hex(8)}")
