"""Graphs for the client's tests: no sandbox and no model, every ending on demand."""

import asyncio
import time
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel

TICKS = 40


class Answer(BaseModel):
    """What a question takes; anything else leaves it open."""

    decisions: str


class State(TypedDict, total=False):
    """Input `do`: what the run is to do; `seen`: what came back."""

    do: str
    seen: Annotated[list[Any], lambda left, right: left + right]
    messages: list[Any]


async def work(state: State) -> State:
    """Tick, fail, ask or answer, as `do` says."""
    write = get_stream_writer()
    do = state.get("do", "")
    if do == "fail":
        write({"type": "progress", "phase": "work", "message": "about to fail"})
        raise RuntimeError("the work failed")
    if do == "tick":
        for number in range(TICKS):
            write(
                {
                    "type": "progress",
                    "phase": "work",
                    "message": str(number),
                    "step": number + 1,
                    "steps": TICKS,
                }
            )
            await asyncio.sleep(0.05)
    if do == "say":
        return {"messages": [AIMessage("hello there")], "seen": ["said"]}
    return {"seen": [do]}


async def ask_left(state: State) -> State:
    """Ask one question."""
    return _asked("left")


async def ask_right(state: State) -> State:
    """Ask another question at the same time."""
    return _asked("right")


async def ask_now(state: State) -> State:
    """Ask what is another question each time."""
    return _asked(f"now {time.time_ns()}")


async def ask_slowly(state: State) -> State:
    """Ask, after a while, whether something may be done."""
    await asyncio.sleep(2)
    action = {"name": "sleep", "args": {"again": True}}
    review = {"action_name": "sleep", "allowed_decisions": ["approve", "reject"]}
    answer = interrupt({"action_requests": [action], "review_configs": [review]})
    return {"seen": [answer["decisions"][0]["type"]]}


def _asked(name: str) -> State:
    answer = interrupt({"question": name}, response_schema=Answer)
    return {"seen": [f"{name}:{answer.decisions}"]}


def _next(state: State) -> list[str]:
    match state.get("do"):
        case "ask":
            return ["ask_left"]
        case "ask both":
            return ["ask_left", "ask_right"]
        case "ask what changes":
            return ["ask_now"]
        case "ask slowly":
            return ["ask_slowly"]
    return [END]


_builder = StateGraph(State)
_builder.add_node("work", work)
_builder.add_node("ask_left", ask_left)
_builder.add_node("ask_right", ask_right)
_builder.add_node("ask_now", ask_now)
_builder.add_node("ask_slowly", ask_slowly)
_builder.add_edge(START, "work")
_builder.add_conditional_edges("work", _next, ["ask_left", "ask_right", "ask_now", "ask_slowly", END])
_builder.add_edge("ask_left", END)
_builder.add_edge("ask_right", END)
_builder.add_edge("ask_now", END)
_builder.add_edge("ask_slowly", END)
graph = _builder.compile()
