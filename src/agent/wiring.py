"""Putting the parts together: the sandbox manager that the graphs, and your own, are wired with."""

from agent.deployment import deployment_name
from agent.sandbox.e2b import E2BProvider
from agent.sandbox.manager import SandboxManager
from agent.settings import Settings


def sandbox_manager(settings: Settings | None = None) -> SandboxManager:
    """Return a manager for E2B sandboxes; nothing is sent and no key is needed until one is acquired.

    Args:
        settings: default those of the environment.
    """
    settings = settings or Settings.from_env()
    return SandboxManager(
        E2BProvider(settings),
        template=settings.sandbox_template,
        lease_s=settings.sandbox_timeout_s,
        deployment=lambda: deployment_name(settings),
    )
