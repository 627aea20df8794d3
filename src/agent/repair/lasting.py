"""What nodes that work in a sandbox have in common: losses, time, telling how far they are."""

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar, cast

from langgraph.runtime import Runtime

from agent.context import Context
from agent.errors import SandboxError, SandboxGoneError
from agent.repair.plan import MAX_STEPS
from agent.sandbox.owners import owner_of

NAME = "plan_execute"
MAX_LOSSES = 2
"""Of its sandbox that one visit of a node outlasts: as many as a run makes sandboxes."""
PAUSE_S = 0.5
"""Before a node starts again."""
Update = dict[str, Any]
Node = TypeVar("Node", bound=Callable[..., Coroutine[Any, Any, Update]])


def lasting(body: Node) -> Node:
    """Let a node outlast the loss of its sandbox, and count its time.

    A node whose sandbox turns out to be gone starts again in a new one, which is prepared from state. The
    manager makes two in a run at most; a visit has an end of its own too, since a sandbox may be called gone
    by what runs in front of it, and alive by the service, again and again.
    """

    @functools.wraps(body)
    async def node(self: Any, state: Any, runtime: Runtime[Context]) -> Update:
        started = time.monotonic()
        update = await _outlasting(lambda: body(self, state, runtime))
        if made := update.get("sandbox_id"):
            self.manager.recorded(owner_of(runtime, NAME), made)
        spent_s = update.get("spent_s", state.get("spent_s", 0.0)) + time.monotonic() - started
        return update | {"spent_s": round(spent_s, 3)}

    return cast(Node, node)


async def _outlasting(visit: Callable[[], Coroutine[Any, Any, Update]]) -> Update:
    for left in reversed(range(MAX_LOSSES + 1)):
        try:
            return await visit()
        except SandboxGoneError as exc:
            lost = exc
        if left:
            await asyncio.sleep(PAUSE_S)
    raise SandboxError(
        f"the sandbox was lost {MAX_LOSSES + 1} times in one step of the graph; giving up. The last: {lost}"
    ) from lost


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
