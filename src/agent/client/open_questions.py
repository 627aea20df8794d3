"""What a thread waits for: the questions in its state, and those that the server has lost there.

`langgraph dev` (langgraph-runtime-inmem 0.36.7) loses questions: once a thread that had run was deleted,
those asked later are gone from their threads' states after a stop in order. The threads' records still have
them, but for those that were given a malformed answer, and the states still stand at the steps that asked. An
answer to such a question is dropped without a word: the step must ask again first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError

from agent.client.decode import interrupts
from agent.client.events import Interrupt
from agent.client.fields import fields, identifier, listed, text

_MOST_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class OpenQuestions:
    """The questions of one thread that wait for an answer."""

    kept: tuple[Interrupt, ...] = ()
    """In the state: they can be answered."""
    lost: tuple[Interrupt, ...] = ()
    """Lost from the state: they have to be asked again, by a run without input."""
    unseen: bool = False
    """The thread waits, and its server no longer knows for what: it has to be asked again to be seen."""

    @property
    def all(self) -> tuple[Interrupt, ...]:
        """Every question that is known."""
        return (*self.kept, *self.lost)


async def open_questions(
    client: LangGraphClient,
    thread_id: str,
    *,
    state: Mapping[str, Any] | None = None,
    thread: Mapping[str, Any] | None = None,
) -> OpenQuestions:
    """Ask what a thread waits for.

    Args:
        client: the SDK's.
        thread_id: the thread.
        state: its state, where it was asked for already.
        thread: its record, likewise.

    Raises:
        Exception: the SDK's, where the server did not say.
    """
    if state is None:
        state = fields(await client.threads.get_state(thread_id), "the thread's state")
    kept = interrupts(state.get("interrupts"))
    silent = _silent_steps(state)
    if not silent:
        return OpenQuestions(kept)
    if thread is None:
        thread = fields(await client.threads.get(thread_id), "the thread")
    if thread.get("status") == "busy":
        return OpenQuestions(kept)
    recorded = fields(thread.get("interrupts") or {}, "the thread's questions")
    lost = tuple(question for step in silent for question in interrupts(recorded.get(step)))
    found = OpenQuestions(kept, lost)
    return found if found.all else replace(found, unseen=await _was_asked(client, thread_id, state))


def _silent_steps(state: Mapping[str, Any]) -> list[str]:
    """Return the ids of the steps that the state stands at and that, as far as it knows, ask nothing."""
    tasks = listed(state.get("tasks") or [], "the list of steps", most=_MOST_STEPS)
    return [text(task.get("id")) for task in tasks if not (task.get("interrupts") or task.get("error"))]


async def _was_asked(client: LangGraphClient, thread_id: str, state: Mapping[str, Any]) -> bool:
    """Whether the run that led to a state ended well, though steps were left: then it stopped to ask."""
    metadata = state.get("metadata")
    run_id = metadata.get("run_id") if isinstance(metadata, Mapping) else None
    if not run_id:
        return False
    try:
        run = fields(await client.runs.get(thread_id, identifier(run_id, "a run's id")), "the run")
    except NotFoundError:  # of the thread that this one was copied from
        return False
    return run.get("status") == "success"
