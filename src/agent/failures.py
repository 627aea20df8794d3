"""What becomes of an exception in a tool call: the one table of what ends a run and what a model is told.

Nothing is tried again here. What may be sent again safely was, where it was sent; tools that only look are
called again by `tools/retries.py`; code that may have run never is.
"""

import logging
from typing import Any, Literal

from langchain.agents.middleware import ToolErrorMiddleware
from langchain.agents.middleware.types import ToolCallRequest

from agent.errors import (
    AgentError,
    InputError,
    ModelError,
    SandboxAnswerError,
    SandboxConflictError,
    SandboxError,
    SandboxForeignError,
    SandboxGoneError,
    SandboxKeyError,
    SandboxQuotaError,
    SandboxRateLimitError,
    SandboxTemplateError,
    SandboxUnreachableError,
    SettingsError,
    logged,
)

logger = logging.getLogger(__name__)

Fate = Literal["ends the run", "is told", "is hidden"]

FATES: dict[type[Exception], Fate] = {
    # A model can do nothing about these; whoever runs the deployment can.
    SettingsError: "ends the run",
    ModelError: "ends the run",
    InputError: "ends the run",
    SandboxKeyError: "ends the run",
    SandboxQuotaError: "ends the run",
    SandboxRateLimitError: "ends the run",
    # Named as the platform's failures: the model can go another way, or say what it could not do.
    SandboxTemplateError: "is told",
    SandboxGoneError: "is told",
    SandboxUnreachableError: "is told",
    SandboxConflictError: "is told",
    SandboxAnswerError: "is told",
    SandboxForeignError: "is told",
    SandboxError: "is told",
    AgentError: "is told",
    # What our own tools say of paths and limits in the sandbox, in words that were written for it.
    OSError: "is told",
    ConnectionError: "is hidden",
    # A fault in a tool: its text may hold anything, such as a path or a key of the server's.
    Exception: "is hidden",
}
"""By class; of several that fit, the most derived one counts."""


def fate(exc: Exception) -> Fate:
    """Return what becomes of an exception."""
    return next(FATES[kind] for kind in type(exc).__mro__ if kind in FATES)


def told(exc: Exception, *, ours: bool = True) -> str | None:
    """Return what the model is told of an exception, or None for one that ends the run.

    One that is hidden is logged whole, and told by the name of its class.

    Args:
        exc: what the tool raised.
        ours: the tool is of this package; of any other's exceptions only our own classes show their text.
    """
    match fate(exc) if ours or isinstance(exc, AgentError) else "is hidden":
        case "ends the run":
            return None
        case "is told":
            return f"error: {exc}"
        case "is hidden":
            logger.error("a tool failed\n%s", logged(exc))
            return (
                f"error: the tool itself failed ({type(exc).__name__}); what you sent is not at fault. It "
                "may have done a part of its work: look before you do it again, or go another way."
            )


def tool_errors() -> ToolErrorMiddleware[Any, Any]:
    """Return langchain's middleware on this table; list it before `SandboxMiddleware`.

    Tools of this package tell by themselves; this is for all others, and for a sandbox that cannot be had.
    """

    def on_error(exc: Exception, request: ToolCallRequest) -> str | None:
        return told(exc, ours=False)

    return ToolErrorMiddleware(on_error)
