"""From the live sandbox in a runtime's context to the box that tools work with."""

from typing import Any

from agent.errors import SandboxError
from agent.sandbox.e2b import AsyncSandbox, E2BBox
from agent.sandbox.provider import Box


def box(handle: object) -> Box:
    """Return the box of a live sandbox: one of the manager's, or any `AsyncSandbox` of the SDK."""
    assert isinstance(handle, AsyncSandbox), f"not a live E2B sandbox: {handle!r}"
    return E2BBox(handle)


def box_of(runtime: Any) -> Box:
    """Return the box of `runtime.context.sandbox`.

    Context holds the SDK's own handle, so that tools written for the SDK work beside these; that is why this
    module, unlike the tools, knows the SDK.

    Args:
        runtime: a LangGraph `Runtime` or a tool's `ToolRuntime`.

    Raises:
        SandboxError: there is no sandbox in the context, or it is not one of E2B's asynchronous SDK.
    """
    sandbox = getattr(runtime.context, "sandbox", None)
    if sandbox is None:
        raise SandboxError(
            "there is no sandbox in runtime.context: add SandboxMiddleware to the agent, or pass "
            "context=Context(sandbox=…)"
        )
    if not isinstance(sandbox, AsyncSandbox):
        raise SandboxError(f"runtime.context.sandbox is a {type(sandbox).__name__}, not an E2B AsyncSandbox")
    return box(sandbox)
