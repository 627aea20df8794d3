"""How often a run did something, counted by this process where it is done.

The counters that langchain's limits keep in a run's state bound what the model does. A client that writes
state, or sends a run past the hooks that count, is not bound by them: it cannot write these.
"""

from collections import OrderedDict
from typing import Any

from agent.sandbox.owners import owner_of

MAX_RUNS = 2_000
"""More are forgotten, oldest first: nothing tells when a run is over."""


class RunCounts:
    """Counts for each run of a server; a resumed run, and one that is begun again, is another.

    Args:
        limit: how often it may be done in a run.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: OrderedDict[tuple[Any, ...], int] = OrderedDict()

    def is_over(self, runtime: Any) -> bool:
        """Count once more; whether it is once too often.

        Args:
            runtime: a LangGraph `Runtime` or a tool's `ToolRuntime`. Where a program gives its runs no ids
                nothing is counted: one thread's runs could not be told apart, and who writes their state is
                the program itself.
        """
        owner, info = owner_of(runtime), runtime.execution_info
        if owner.home == "process" and not info.run_id:
            return False
        # An agent that is a part of another graph may be used several times in one run.
        use = info.checkpoint_ns.rpartition("|")[0]
        key = (owner.run, owner.retried, use)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        self._counts.move_to_end(key)
        while len(self._counts) > MAX_RUNS:
            self._counts.popitem(last=False)
        return count > self._limit
