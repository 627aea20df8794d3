"""How this package's tools are made: failures go back to the model, as results with the status `error`."""

import functools
from collections.abc import Awaitable, Callable
from typing import Any, Literal, ParamSpec, TypeVar

from langchain_core.tools import BaseTool, ToolException, tool
from langgraph.errors import GraphBubbleUp

from agent.failures import told
from agent.tools.retries import is_asked_again

P = ParamSpec("P")
R = TypeVar("R")


def sandbox_tool(*, artifact: bool = False) -> Callable[[Callable[..., Awaitable[Any]]], BaseTool]:
    """Make a tool of an async function; its docstring and signature are what the model is told of it.

    What the function raises becomes the result, unless it ends the run: `agent.failures` says which does.

    Args:
        artifact: the function returns a pair: what the model reads, and what the message carries beside it.
    """

    def made(work: Callable[..., Awaitable[Any]]) -> BaseTool:
        form: Literal["content", "content_and_artifact"] = "content_and_artifact" if artifact else "content"
        result = tool(parse_docstring=True, response_format=form)(_telling(work))
        result.handle_tool_error = True
        return result

    return made


def _telling(work: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    @functools.wraps(work)
    async def telling(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await work(*args, **kwargs)
        except GraphBubbleUp:
            raise
        except Exception as exc:
            if is_asked_again(exc):
                raise
            words = told(exc)
            if words is None:
                raise
            raise ToolException(words) from exc

    return telling
