"""What a thread waits for: the questions in its state, and those that the server has lost there.

`langgraph dev` (langgraph-runtime-inmem 0.36.7) loses questions: once a thread that had run was deleted,
those asked later are gone from their threads' states after a stop in order. The threads' records still have
them, and the states still stand at the steps that asked. An answer to such a question is dropped without a
word: the step must ask again first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langgraph_sdk.client import LangGraphClient

from agent.client.decode import interrupts
from agent.client.events import Interrupt


@dataclass(frozen=True, slots=True)
class OpenQuestions:
    """The questions of one thread that wait for an answer."""

    kept: tuple[Interrupt, ...] = ()
    """In the state: they can be answered."""
    lost: tuple[Interrupt, ...] = ()
    """Lost from the state: they have to be asked again, by a run without input."""

    @property
    def all(self) -> tuple[Interrupt, ...]:
        """Every question that a human has to answer."""
        return (*self.kept, *self.lost)


async def open_questions(
    client: LangGraphClient, thread_id: str, state: Mapping[str, Any] | None = None
) -> OpenQuestions:
    """Ask what a thread waits for.

    Args:
        client: the SDK's.
        thread_id: the thread.
        state: its state, where it was asked for already.

    Raises:
        Exception: the SDK's, where the server did not say.
    """
    if state is None:
        state = await client.threads.get_state(thread_id)
    if not _silent_steps(state):
        return OpenQuestions(interrupts(state.get("interrupts")))
    return questions_of(await client.threads.get(thread_id), state)


def questions_of(thread: Mapping[str, Any], state: Mapping[str, Any]) -> OpenQuestions:
    """Return what a thread waits for, from its record and its state."""
    recorded = thread.get("interrupts")
    by_step = recorded if isinstance(recorded, Mapping) and thread.get("status") != "busy" else {}
    lost = (question for step in _silent_steps(state) for question in interrupts(by_step.get(step)))
    return OpenQuestions(interrupts(state.get("interrupts")), tuple(lost))


def _silent_steps(state: Mapping[str, Any]) -> list[str]:
    """Return the ids of the steps that the state stands at and that, as far as it knows, ask nothing."""
    tasks = state.get("tasks") or ()
    return [str(task.get("id")) for task in tasks if not (task.get("interrupts") or task.get("error"))]
