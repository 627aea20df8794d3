"""What a thread has come to, as far as its server still knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph_sdk.client import LangGraphClient

from agent.client.errors import Where, explained
from agent.client.events import Failed, Interrupt, State
from agent.client.fields import fields, listed, objects, text
from agent.client.open_questions import open_questions

_FAILED = frozenset({"error", "timeout"})
_GOING_ON = frozenset({"pending", "running"})


@dataclass(frozen=True, slots=True)
class ThreadAccount:
    """A thread's state, its open questions, and how its newest run stands.

    `status` is the server's word for the thread. `run_status` is its newest run's, empty without a run.
    `unseen` marks a thread that waits for an answer to what its server no longer knows: `Driver.ask_again`.
    `forgotten` marks a thread that has run and of which no state is left: a killed `langgraph dev` keeps
    threads and runs at times, but not their checkpoints.
    """

    status: str
    values: State = field(default_factory=dict)
    pending: tuple[Interrupt, ...] = ()
    run_status: str = ""
    failure: Failed | None = None
    forgotten: bool = False
    unseen: bool = False

    @property
    def waits(self) -> bool:
        """Whether the thread waits for an answer."""
        return self.unseen or bool(self.pending)

    @property
    def works(self) -> bool:
        """Whether a run works on the thread, or is next to."""
        return self.run_status in _GOING_ON


async def account(client: LangGraphClient, where: Where) -> ThreadAccount:
    """Ask for all that is known of a thread.

    Args:
        client: the SDK's.
        where: the server and the thread.

    Raises:
        NotFoundError: no such thread.
        ClientError: the server did not say.
    """
    assert where.thread_id is not None
    with explained(where):
        thread = fields(await client.threads.get(where.thread_id), "the thread")
        state = fields(await client.threads.get_state(where.thread_id), "the thread's state")
        runs = listed(await client.runs.list(where.thread_id, limit=1), "the list of runs", most=1)
        questions = await open_questions(client, where.thread_id, state=state, thread=thread)
    status = text(thread.get("status"))
    found = state.get("values")
    values = found if isinstance(found, Mapping) else {}
    pending = questions.all
    newest = text(runs[0].get("status")) if runs else ""
    failed = newest in _FAILED or (status == "error" and newest not in _GOING_ON)
    failure = failed_run(_reason(thread, state), newest or status, pending) if failed else None
    nothing = not values and not pending and not state.get("created_at")
    forgotten = nothing and not failed and (status == "interrupted" or newest in {"success", "interrupted"})
    forgotten = forgotten and newest not in _GOING_ON
    return ThreadAccount(status, values, pending, newest, failure, forgotten, questions.unseen)


def failed_run(reason: Any, status: str, pending: tuple[Interrupt, ...] = ()) -> Failed:
    """Return the failure of a run from what the server says of it, which is an object, a text or nothing."""
    if isinstance(reason, Mapping):
        name = str(reason.get("error") or "")
        return Failed(str(reason.get("message") or name or status), name, status, pending)
    return Failed(str(reason or f"The run ended with status {status}."), "", status, pending)


def _reason(thread: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
    tasks = (task.get("error") for task in objects(state.get("tasks")))
    return thread.get("error") or next((error for error in tasks if error), None)
