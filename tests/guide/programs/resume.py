# A program of E2B's LangGraph guide: "Rebuild the context when you resume", with the sandbox of
# "Let the sandbox outlive the interrupt".
# The guide has the two excerpts; lines that were added around them, to have a graph that asks, are marked.
# ruff: noqa: D103, I001, T201
from dataclasses import dataclass  # added
from typing import TypedDict  # added

from e2b_code_interpreter import Sandbox  # added
from langgraph.checkpoint.memory import InMemorySaver  # added
from langgraph.graph import END, START, StateGraph  # added
from langgraph.runtime import Runtime  # added
from langgraph.types import Command
from langgraph.types import interrupt  # added


@dataclass  # added
class Context:  # added
    sandbox: Sandbox  # added


class State(TypedDict, total=False):  # added
    sandbox_id: str  # added
    output: str  # added


def before(state: State, runtime: Runtime[Context]) -> State:  # added
    runtime.context.sandbox.run_code("kept = 'the kernel is the same'")  # added
    return {"sandbox_id": runtime.context.sandbox.sandbox_id}  # added


def ask(state: State) -> State:  # added
    return {"output": f"approved: {interrupt('Go on?')}"}  # added


def after(state: State, runtime: Runtime[Context]) -> State:  # added
    execution = runtime.context.sandbox.run_code("print(kept)")  # added
    return {"output": f"{state['output']}, {execution.logs.stdout[0]}"}  # added


builder = StateGraph(State, context_schema=Context)  # added
builder.add_sequence([before, ask, after])  # added
builder.add_edge(START, "before")  # added
builder.add_edge("after", END)  # added
graph = builder.compile(checkpointer=InMemorySaver())  # added

sandbox = Sandbox.create(
    timeout=600,
    lifecycle={"on_timeout": "pause", "auto_resume": True},
)
config = {"configurable": {"thread_id": "review-42"}}  # added
first = sandbox.sandbox_id  # added

result = graph.invoke({}, config=config, context=Context(sandbox=sandbox))

if "__interrupt__" in result:
    print("asked:", result["__interrupt__"][0].value)  # added
    sandbox.pause()  # added: what the timeout would do while the human thinks
    sandbox = Sandbox.connect(graph.get_state(config).values["sandbox_id"])
    result = graph.invoke(
        Command(resume=True),
        config=config,
        context=Context(sandbox=sandbox),
    )

print("same sandbox:", sandbox.sandbox_id == first)  # added
print(result["output"])  # added
sandbox.kill()  # added
