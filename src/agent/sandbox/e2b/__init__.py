"""E2B as the sandbox service; the only part of the package that imports the e2b SDK."""

from e2b_code_interpreter.code_interpreter_async import AsyncSandbox

from agent.sandbox.e2b.box import E2BBox, OwnedSandbox
from agent.sandbox.e2b.provider import E2BProvider

__all__ = ["AsyncSandbox", "E2BBox", "E2BProvider", "OwnedSandbox"]
