"""How a thread stands: whether anything works on it, or waits for a human."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from langgraph_sdk.client import LangGraphClient

from agent.client.errors import NotFoundError, Where, explained
from agent.client.fields import fields, instant, listed, text, word
from agent.client.open_questions import open_questions

Standing = Literal["gone", "busy", "waiting", "idle"]


@dataclass(frozen=True, slots=True)
class ThreadStanding:
    """What the server says of a thread.

    `gone`: there is none, or this client may not see it. `busy`: a run works or is queued. `waiting`: it asks
    something, whatever its status says: a malformed answer hides it there. See `open_questions`.
    """

    standing: Standing
    since: datetime | None = None
    """When its newest checkpoint was written."""
    keeps: str = ""
    """The sandbox that its state keeps for the next turn; empty where none is kept."""


async def standing(client: LangGraphClient, server: str, thread_id: str) -> ThreadStanding:
    """Ask how a thread stands.

    Args:
        client: the SDK's.
        server: its address, for errors.
        thread_id: the thread.

    Raises:
        NotFoundError: there is a thread, and the server lacks what its state needs, such as its graph.
        ClientError: the server did not say.
    """
    where = Where(server, thread_id)
    try:
        with explained(where):
            thread = fields(await client.threads.get(thread_id), "the thread")
    except NotFoundError:
        return ThreadStanding("gone")
    with explained(where):
        # A sweep ends the sandbox of a thread that is idle: that must have been said.
        if word(thread.get("status"), "the thread's status") == "busy":
            return ThreadStanding("busy")
        # Both: a queued run leaves the thread's status as it was.
        for status in ("running", "pending"):
            if listed(await client.runs.list(thread_id, limit=1, status=status), "the list of runs", most=1):
                return ThreadStanding("busy")
        state = fields(await client.threads.get_state(thread_id), "the thread's state")
        questions = await open_questions(client, thread_id, state=state, thread=thread)
        written = instant(state.get("created_at"))
        since = datetime.fromisoformat(written) if written else None
    waits = questions.unseen or bool(questions.all)
    return ThreadStanding("waiting" if waits else "idle", since, _kept(state.get("values")))


def _kept(values: Any) -> str:
    if not isinstance(values, Mapping):
        return ""
    policy = values.get("sandbox_policy")
    keeps = isinstance(policy, Mapping) and policy.get("keep") == "thread"
    return text(values.get("sandbox_id")) if keeps else ""
