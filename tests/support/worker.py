"""An agent for lifecycle tests, real but for its model: that does what the human's message says.

The message is a JSON list of turns, each a list of calls `[tool, arguments]`; the model makes the calls of
one turn in one message, then those of the next, and ends with the word "done".
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.types import interrupt
from langgraph_runtime_inmem.retry import RetryableException

from agent.context import Context
from agent.sandbox.middleware import SandboxMiddleware
from agent.sandbox.watch import RunWatch
from agent.tools import Limits, file_tools, python_tool, shell_tool
from agent.tools.events import ToolEventsMiddleware
from agent.wiring import sandbox_manager

Call = tuple[str, dict[str, Any]]


class Obedient(BaseChatModel):
    """Makes the calls that the last human message lists; its last words say whether it was told of a loss."""

    @property
    def _llm_type(self) -> str:
        return "obedient"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> "Obedient":  # type: ignore[override]
        """Every tool may be called."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        _check(messages)
        at = max(i for i, message in enumerate(messages) if isinstance(message, HumanMessage))
        turns: list[list[Call]] = json.loads(messages[at].text)
        done = sum(isinstance(message, AIMessage) for message in messages[at:])
        if done < len(turns):
            calls = [
                {"name": name, "args": args, "id": f"call-{at}-{done}-{i}", "type": "tool_call"}
                for i, (name, args) in enumerate(turns[done])
            ]
            said = AIMessage("", tool_calls=calls)
        else:
            lost = "was lost and a new one was made" in messages[0].text
            said = AIMessage("done; told of a loss" if lost else "done")
        return ChatResult(generations=[ChatGeneration(message=said)])


def _check(messages: list[BaseMessage]) -> None:
    """Refuse what providers refuse: a call without its answer right behind it."""
    open_calls: list[str] = []
    for message in messages:
        if message.type == "tool":
            open_calls.remove(message.tool_call_id)  # type: ignore[attr-defined]
        elif open_calls:
            raise ValueError(f"400: no answer to {open_calls}")
        if isinstance(message, AIMessage):
            open_calls = [str(call["id"]) for call in message.tool_calls]


@tool
async def ask(question: str) -> str:
    """Ask the human."""
    return str(interrupt({"question": question}))


@tool
async def fail() -> str:
    """Raise what no middleware turns into a result."""
    raise ArithmeticError("the tool failed")


_stumbled: set[str] = set()


@tool
async def stumble(config: RunnableConfig) -> str:
    """Fail the thread's run once, in a way that has the server begin it again."""
    thread = str(config["configurable"]["thread_id"])
    if thread not in _stumbled:
        _stumbled.add(thread)
        raise RetryableException("once more")
    return "up again"


@tool
async def dawdle(runtime: ToolRuntime[Any, Any]) -> str:
    """Take long in the thread's first attempt at it, also where the server is another process by then."""
    begun = Path(f"dawdled-{runtime.config['configurable']['thread_id']}")
    runtime.stream_writer({"text": "started"})
    if not await asyncio.to_thread(begun.exists):
        await asyncio.to_thread(begun.touch)
        await asyncio.sleep(60)
    return "done"


_manager = sandbox_manager()
_ours: list[BaseTool] = [python_tool(Limits()), shell_tool(Limits()), *file_tools(Limits())]
_tools = [*_ours, ask, fail, stumble, dawdle]

graph = create_agent(
    Obedient(),
    tools=_tools,
    system_prompt="You work in a sandbox.",
    middleware=[ToolEventsMiddleware(), SandboxMiddleware(_manager)],
    context_schema=Context,
).with_config(callbacks=[RunWatch(_manager)])


def saying(*turns: Sequence[Call]) -> dict[str, Any]:
    """Return the run input that makes the worker make these calls, turn by turn."""
    return {"messages": [{"role": "user", "content": json.dumps(turns)}]}


def python(code: str) -> Call:
    """Return a call of run_python."""
    return "run_python", {"code": code}


def command(line: str) -> Call:
    """Return a call of run_command."""
    return "run_command", {"command": line}


ASK: Call = ("ask", {"question": "go on?"})
FAIL: Call = ("fail", {})
STUMBLE: Call = ("stumble", {})
DAWDLE: Call = ("dawdle", {})
