"""A sandbox in a node of your own `StateGraph`: acquired by id, kept in state, released at the end."""

import asyncio
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from agent.sandbox.middleware import SandboxId
from agent.sandbox.owners import owner_of
from agent.wiring import guarded, sandbox_manager

manager = sandbox_manager()


class State(TypedDict, total=False):
    """The id goes into state, the live sandbox never."""

    sandbox_id: SandboxId
    output: str


async def compute(state: State, runtime: Runtime[None]) -> State:
    """Run code in the thread's sandbox: the one in state, or a new one."""
    acquired = await manager.acquire(owner_of(runtime, "own"), state.get("sandbox_id", ""))
    execution = await acquired.handle.run_code("import platform; platform.system()")
    return {"sandbox_id": acquired.sandbox_id, "output": execution.text}


async def finish(state: State, runtime: Runtime[None]) -> State:
    """End the sandbox."""
    await manager.release(owner_of(runtime, "own"), state["sandbox_id"])
    return {"sandbox_id": ""}


graph = guarded(
    StateGraph(State)
    .add_node("compute", compute)
    .add_node("finish", finish)
    .add_edge(START, "compute")
    .add_edge("compute", "finish")
    .add_edge("finish", END)
    .compile(),
    manager,
)

if __name__ == "__main__":
    print(asyncio.run(graph.ainvoke({}))["output"])
