"""What nodes that work in a sandbox have in common: losses, time, telling how far they are."""

import functools
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar, cast

from langgraph.runtime import Runtime

from agent.context import Context
from agent.errors import SandboxGoneError
from agent.repair.plan import MAX_STEPS
from agent.sandbox.owners import owner_of

NAME = "plan_execute"
Update = dict[str, Any]
Node = TypeVar("Node", bound=Callable[..., Coroutine[Any, Any, Update]])


def lasting(body: Node) -> Node:
    """Let a node outlast the loss of its sandbox, and count its time.

    A node whose sandbox turns out to be gone starts again in a new one, which is prepared from state; the
    manager ends this after two creations in a run.
    """

    @functools.wraps(body)
    async def node(self: Any, state: Any, runtime: Runtime[Context]) -> Update:
        started = time.monotonic()
        while True:
            try:
                update = await body(self, state, runtime)
            except SandboxGoneError:
                continue
            if made := update.get("sandbox_id"):
                self.manager.recorded(owner_of(runtime, NAME), made)
            spent_s = update.get("spent_s", state.get("spent_s", 0.0)) + time.monotonic() - started
            return update | {"spent_s": round(spent_s, 3)}

    return cast(Node, node)


def seconds_left(state: Mapping[str, Any]) -> float:
    """Return how much working time the run has left."""
    return float(state["limits"]["time_s"] - state["spent_s"])


def steps_left(state: Mapping[str, Any]) -> int:
    """Return how many steps the next plan may have."""
    return min(MAX_STEPS, int(state["limits"]["steps"]) - int(state["done"]))


def task_of(runtime: Runtime[Context]) -> str:
    """Return the id of the visit's task: the same when a crashed visit is tried again, else another."""
    assert runtime.execution_info is not None
    return runtime.execution_info.task_id


def progress(runtime: Runtime[Context], state: Mapping[str, Any], phase: str, message: str) -> None:
    """Tell clients what is being done."""
    steps = len(state.get("plan", {}).get("steps", ()))
    runtime.stream_writer(
        {
            "type": "progress",
            "phase": phase,
            "message": message,
            "iteration": state.get("iteration", 1),
            "step": state["step"] + 1 if phase == "execute" else None,
            "steps": steps or None,
        }
    )
