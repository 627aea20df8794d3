"""E2B as the sandbox service; the only part of the package that imports the e2b SDK."""

from agent.sandbox.e2b.box import E2BBox, OwnedSandbox
from agent.sandbox.e2b.provider import E2BProvider

__all__ = ["E2BBox", "E2BProvider", "OwnedSandbox"]
