"""What this process remembers of the runs that use sandboxes; a cache, never the truth."""

from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field

from agent.sandbox.provider import Handle

MAX_RUNS = 2_000
"""More are forgotten, oldest first: a run that ended without a word leaves its record behind."""


@dataclass(slots=True)
class Run:
    """One run's dealings with sandboxes."""

    threadless: bool = False
    """It keeps no checkpoints: what it leaves behind, nothing finds again."""
    creations: int = 0
    """How many sandboxes it has made; each acquisition stands somewhere of its own, and this they share."""
    made: set[str] = field(default_factory=set)
    """Sandboxes this run created; only these may it end when it is rolled back."""
    recorded: set[str] = field(default_factory=set)
    """Sandboxes whose ids state holds, to this process's knowledge."""
    held: dict[str, Handle] = field(default_factory=dict)
    """Live handles this run made or checked, by id; these are paused when a human is asked."""
    made_by_task: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """How many creations a task has asked for: the ordinal in its idempotency keys."""
    chains: set[str] = field(default_factory=set)
    """The nodes that asked for a sandbox, where a server began the run again."""
    begun_by: str = ""
    """The task that began it."""

    def close(self) -> None:
        """Let go of its sandboxes; how many it made stays known, since it may go on all the same."""
        for collection in (self.made, self.recorded, self.held, self.chains):
            collection.clear()


class Runs:
    """The records, by run id."""

    def __init__(self, most: int = MAX_RUNS) -> None:
        self._most = most
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self.doomed: set[str] = set()
        """Ids of sandboxes that are being ended after their run went: nobody may adopt them."""

    def of(self, run_id: str) -> Run:
        """Return the run's record, making it if need be."""
        run = self._runs.setdefault(run_id, Run())
        self._runs.move_to_end(run_id)
        while len(self._runs) > self._most:
            self._runs.popitem(last=False)
        return run

    def known(self, run_id: str) -> Run | None:
        """Return the run's record if there is one."""
        return self._runs.get(run_id)

    def with_chain(self, chains: set[str]) -> str:
        """Return the id of the run of which one of these nodes asked for a sandbox, or an empty text."""
        return next((run_id for run_id, run in self._runs.items() if run.chains & chains), "")

    def forget(self, run_id: str) -> None:
        """Drop the record of a run that has ended."""
        self._runs.pop(run_id, None)
