"""The graph `plan_execute`: repairs a project whose tests fail, with a human's approval."""

from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.context import Context
from agent.repair.consent import APPROVED, Consent
from agent.repair.lasting import seconds_left
from agent.repair.nodes import FirstAndLast
from agent.repair.planning import Planning
from agent.repair.state import RepairInput, RepairOutput, RepairState
from agent.repair.working import Working
from agent.sandbox.manager import SandboxManager
from agent.settings import Settings
from agent.wiring import deployment_seals, guarded, sandbox_manager

MAX_VISITS = 300
"""All the tries, rejections and steps that limits allow, with room; the default of 25 ends a long plan."""


def after_bootstrap(state: RepairState) -> Literal["plan", "summarize"]:
    """Plan unless the tests pass already, the set-up failed, or there is nothing to repair."""
    return "summarize" if state.get("status") else "plan"


def after_plan(state: RepairState) -> Literal["approve", "summarize"]:
    """Ask the human, if there is a plan."""
    return "summarize" if state.get("status") else "approve"


def after_approve(state: RepairState) -> Literal["plan", "execute", "summarize"]:
    """Carry out what was approved; plan anew what was turned down in words."""
    if state.get("status"):
        return "summarize"
    return "execute" if state["plan"] and _approved(state) else "plan"


def after_execute(state: RepairState) -> Literal["approve", "execute", "verify"]:
    """Take the next step; after the last, or when the time is up, verify; ask where nobody approved."""
    if not _approved(state):
        return "approve"
    more = state["step"] < len(state["plan"]["steps"]) and seconds_left(state) > 0
    return "execute" if more else "verify"


def _approved(state: RepairState) -> bool:
    return bool(state["decisions"]) and state["decisions"][-1]["type"] in APPROVED


def after_verify(state: RepairState) -> Literal["plan", "summarize"]:
    """Plan anew on red while there are tries left."""
    return "summarize" if state.get("status") else "plan"


def repair_graph(
    settings: Settings, manager: SandboxManager, checkpointer: BaseCheckpointSaver[Any] | None = None
) -> CompiledStateGraph[RepairState, Context, RepairInput, RepairOutput]:
    """Wire the graph.

    Args:
        settings: limits and the default model.
        manager: where sandboxes come from.
        checkpointer: keeps state between runs; a LangGraph server brings its own.
    """
    consent = Consent(deployment_seals(settings), settings.plan_approval)
    ends, planning = FirstAndLast(settings, manager, consent), Planning(settings, manager, consent)
    working = Working(settings, manager, consent)
    graph = (
        StateGraph(RepairState, context_schema=Context, input_schema=RepairInput, output_schema=RepairOutput)
        .add_node("bootstrap", ends.bootstrap)
        .add_node("plan", planning.plan)
        .add_node("approve", planning.approve)
        .add_node("execute", working.execute)
        .add_node("verify", working.verify)
        .add_node("summarize", ends.summarize)
        .add_edge(START, "bootstrap")
        .add_conditional_edges("bootstrap", after_bootstrap)
        .add_conditional_edges("plan", after_plan)
        .add_conditional_edges("approve", after_approve)
        .add_conditional_edges("execute", after_execute)
        .add_conditional_edges("verify", after_verify)
        .add_edge("summarize", END)
        .compile(name="plan_execute", checkpointer=checkpointer)
    )
    return guarded(graph, manager).with_config(recursion_limit=MAX_VISITS)


_settings = Settings.from_env()
graph = repair_graph(_settings, sandbox_manager(_settings))
