"""The graph `plan_execute`: repairs a project whose tests fail, with a human's approval."""

from typing import Literal

from langgraph.graph import END, START, StateGraph

from agent.context import Context
from agent.repair.nodes import RepairNodes
from agent.repair.state import RepairInput, RepairState
from agent.sandbox.watch import RunWatch
from agent.settings import Settings
from agent.wiring import sandbox_manager

_settings = Settings.from_env()
_manager = sandbox_manager(_settings)
_nodes = RepairNodes(_settings, _manager)

MAX_VISITS = 100
"""Three tries of at most 20 steps, with room; the default of 25 would end a long plan in the middle."""


def after_bootstrap(state: RepairState) -> Literal["plan", "summarize"]:
    """Plan unless the tests pass already or the set-up failed."""
    return "summarize" if state.get("status") else "plan"


def after_plan(state: RepairState) -> Literal["approve", "summarize"]:
    """Ask the human, if there is a plan."""
    return "summarize" if state.get("status") else "approve"


def after_approve(state: RepairState) -> Literal["execute", "summarize"]:
    """Carry out what was approved."""
    return "summarize" if state.get("status") else "execute"


def after_execute(state: RepairState) -> Literal["execute", "verify"]:
    """Take the next step; after the last, verify."""
    return "execute" if state["step"] < len(state["plan"]["steps"]) else "verify"


def after_verify(state: RepairState) -> Literal["plan", "summarize"]:
    """Plan anew on red while there are tries left."""
    return "summarize" if state.get("status") else "plan"


graph = (
    StateGraph(RepairState, context_schema=Context, input_schema=RepairInput)
    .add_node("bootstrap", _nodes.bootstrap)
    .add_node("plan", _nodes.plan)
    .add_node("approve", _nodes.approve)
    .add_node("execute", _nodes.execute)
    .add_node("verify", _nodes.verify)
    .add_node("summarize", _nodes.summarize)
    .add_edge(START, "bootstrap")
    .add_conditional_edges("bootstrap", after_bootstrap)
    .add_conditional_edges("plan", after_plan)
    .add_conditional_edges("approve", after_approve)
    .add_conditional_edges("execute", after_execute)
    .add_conditional_edges("verify", after_verify)
    .add_edge("summarize", END)
    .compile(name="plan_execute")
    .with_config(recursion_limit=MAX_VISITS, callbacks=[RunWatch(_manager)])
)
