# A program of E2B's LangGraph guide: "Keep the Sandbox in context and the sandbox_id in state".
# The guide takes Context and sandbox from the program before; lines that were added are marked.
# ruff: noqa: D103, T201
from dataclasses import dataclass  # added
from typing import TypedDict

from e2b_code_interpreter import Sandbox  # added
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime


@dataclass  # added
class Context:  # added
    sandbox: Sandbox  # added


class State(TypedDict, total=False):
    sandbox_id: str
    output: str


def run_step(state: State, runtime: Runtime[Context]) -> State:
    sandbox = runtime.context.sandbox
    execution = sandbox.run_code("import platform; print(platform.python_version())")
    return {"sandbox_id": sandbox.sandbox_id, "output": execution.logs.stdout[0]}


graph = (
    StateGraph(State, context_schema=Context)
    .add_node("run_step", run_step)
    .add_edge(START, "run_step")
    .add_edge("run_step", END)
    .compile(checkpointer=InMemorySaver())
)

sandbox = Sandbox.create()  # added
config = {"configurable": {"thread_id": "review-42"}}
graph.invoke({}, config=config, context=Context(sandbox=sandbox))
print(graph.get_state(config).values["output"])  # added
sandbox.kill()  # added
