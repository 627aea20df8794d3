"""Answers to questions: one counts in the run that carries it, and in no other.

A server keeps an answer beside the checkpoint with the question. After a rollback of the run that carried it
the question is open again, but a run without an answer of its own, such as a bare one, would be given the old
one (langgraph 1.2.24): what a human took back would be carried out. So a run notes which answers it
carries, and of all that a question was given only these count.
"""

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langgraph.callbacks import GraphCallbackHandler
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, interrupt
from pydantic import TypeAdapter, ValidationError

from agent.errors import InputError
from agent.sandbox.owners import keeps_checkpoints

_ID = re.compile("[0-9a-f]{32}")
MAX_ANSWERS = 1_000
"""Of one question; more are a client's that fills the thread with them."""
MAX_CHAINS = 100_000
"""More are forgotten, the oldest first: a stream that its reader abandons never ends."""


ON_A_THREAD = (
    "on a thread the question is kept: POST /threads, then POST /threads/<thread_id>/runs/wait, and answer "
    "there with `command.resume` (an A2A context is a thread; a program of your own compiles the graph with "
    "a checkpointer)"
)
"""Where a question can be answered, for whoever asked where it cannot."""


@dataclass(slots=True)
class _Run:
    carried: list[Any]
    root: UUID
    chains: set[UUID] = field(default_factory=set)


class AnswerWatch(GraphCallbackHandler):
    """Bound to a graph that asks: `graph.with_config(callbacks=[AnswerWatch()])`.

    It knows a run by the ids that LangChain gives the run's chains: a process of one's own gives runs no ids,
    and a run that a server begins again has another.

    Args:
        check: called with what a run is begun with; what it raises ends the run before anything is kept.
    """

    raise_error = True
    # Before the other handlers: they are not told of a run that does not begin.
    run_inline = True

    def __init__(self, check: Callable[[Any], None] | None = None) -> None:
        super().__init__()
        self._check = check
        self._runs: dict[UUID, _Run] = {}

    async def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        """Note, of a run's root, the answers it was begun with; its chains are known by it.

        Raises:
            InputError: the check refuses it.
        """
        if parent_run_id is None:
            if self._check:
                self._check(inputs)
            run = _Run(_resume_values(inputs), run_id)
        elif (known := self._runs.get(parent_run_id)) is None:
            return
        else:
            run = known
        run.chains.add(run_id)
        self._runs[run_id] = run
        while len(self._runs) > MAX_CHAINS:
            del self._runs[next(iter(self._runs))]

    async def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """Forget a chain, and a run with all its chains."""
        self._forget(run_id)

    async def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Forget it where it failed, too."""
        self._forget(run_id)

    def carried(self, chain: UUID | None) -> list[Any]:
        """Return the answers that the run of a chain was begun with; none of one that is not known."""
        run = self._runs.get(chain) if chain else None
        return run.carried if run else []

    def _forget(self, run_id: UUID) -> None:
        run = self._runs.pop(run_id, None)
        if run is not None and run_id == run.root:
            for chain in run.chains:
                self._runs.pop(chain, None)


def _resume_values(inputs: Any) -> list[Any]:
    """Return what a run's input answers: a map of questions' ids, or one bare value."""
    resume = inputs.resume if isinstance(inputs, Command) else None
    if isinstance(resume, dict) and resume and all(_ID.fullmatch(str(key)) for key in resume):
        return list(resume.values())
    return [] if resume is None else [resume]


def _carried(answers: list[Any], schema: Any) -> list[Any]:
    """Return the answers that the run of this node carries; where no graph notes it, the last one."""
    manager: Any = get_config().get("callbacks")
    watch = next((one for one in getattr(manager, "handlers", ()) if isinstance(one, AnswerWatch)), None)
    if watch is None:
        return answers[-1:]
    adapter: TypeAdapter[Any] = TypeAdapter(schema)
    carried = []
    for given in watch.carried(manager.parent_run_id):
        with contextlib.suppress(ValidationError):
            carried += [given, adapter.validate_python(given)]
    return [answer for answer in answers if answer in carried]


def answer_to(value: Any, response_schema: Any, *, unattended: str = "nothing was done") -> Any:
    """Stop the graph at a question; return the answer that this run carries.

    Args:
        value: the question, as clients are shown it.
        response_schema: what an answer must be; a wrong one is refused before it is kept.
        unattended: what is said where nobody can answer: what was not done, and how to have it done unasked.

    Raises:
        GraphInterrupt: there is none; earlier ones of other runs do not count.
        ValidationError: there is a wrong one.
        InputError: the thread holds too many that do not count, or the run has no thread: the question would
            be gone with the run.
    """
    if not keeps_checkpoints():
        raise InputError(f"nobody can be asked in a run without a thread: {unattended}. Or {ON_A_THREAD}")
    answers: list[Any] = []
    try:
        for _ in range(MAX_ANSWERS):
            answers.append(interrupt(value, response_schema=response_schema))
    # A wrong answer is refused each time it is met, an earlier run's too.
    except (GraphInterrupt, ValidationError):
        if not (carried := _carried(answers, response_schema)):
            raise
        return carried[-1]
    raise InputError(f"{MAX_ANSWERS} answers to this question were taken back: begin the turn again")
