"""On whose behalf a sandbox is acquired, and how a sandbox says whose it is."""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langgraph.config import get_config

APP = "langgraph-e2b-agent"
MAX_TURN_CHARS = 200
USE = "use"
"""The metadata of a sandbox that is not the thread's own: what it was made for."""
VERIFY = "verify"
_SANDBOX_ID = re.compile("[A-Za-z0-9_-]{1,200}")
_PROCESS = f"process-{uuid.uuid4()}"


@dataclass(frozen=True, slots=True)
class Owner:
    """The ids of the graph's run that works in a sandbox."""

    graph: str
    thread: str
    run: str
    task: str
    """LangGraph's task id: the same when a crashed step is tried again, another in every run."""
    turn: str = ""
    """The run that began the turn; a run that resumes it, after a question, is of the same turn."""
    home: Literal["server", "process"] = "server"
    """`process`: run outside a LangGraph server, so that no server knows the thread."""
    retried: bool = False
    """The server has begun the run before, and lost the process that worked on it, perhaps with its state."""
    threadless: bool = False
    """The run keeps no checkpoints: once it is over nobody can answer it, and nothing names its sandbox."""
    chain: str = ""
    """LangChain's id of the node that asks, by which callbacks know it."""

    def identity(self, deployment: str) -> dict[str, str]:
        """Return the metadata that every sandbox of this thread carries."""
        return {"app": APP, "deployment": deployment, "graph": self.graph, "thread": self.thread}

    def turn_identity(self, deployment: str) -> dict[str, str]:
        """Return the metadata that every sandbox of this turn carries."""
        return self.identity(deployment) | {"turn": self.turn or self.run}

    def metadata(self, deployment: str) -> dict[str, str]:
        """Return the metadata of a sandbox that this run makes."""
        return self.turn_identity(deployment) | {"run": self.run, "home": self.home}

    def fresh_metadata(self, deployment: str) -> dict[str, str]:
        """Return the metadata of a sandbox to verify in; it names no turn, which could adopt it."""
        made_by = {"run": self.run, "home": self.home, "keep": "run"}
        return self.identity(deployment) | made_by | {USE: VERIFY}

    def owns(self, metadata: Mapping[str, str], deployment: str) -> bool:
        """Whether a sandbox with this metadata is the thread's own: it works in it, and may end it."""
        named = all(metadata.get(name) == value for name, value in self.identity(deployment).items())
        return named and not metadata.get(USE)


def named(sandbox_id: object) -> str:
    """Return a sandbox's id as state holds it; empty where it can be none: clients can write it.

    It becomes a part of the service's addresses.
    """
    return sandbox_id if isinstance(sandbox_id, str) and _SANDBOX_ID.fullmatch(sandbox_id) else ""


def owner_of(runtime: Any, graph: str = "agent", *, turn: str = "") -> Owner:
    """Return the owner that a runtime stands for.

    Outside a server a run may have no id, and without a checkpointer no thread either. State then never
    leaves this process, and its sandboxes are marked as the process's own.

    Args:
        runtime: a LangGraph `Runtime` or a tool's `ToolRuntime`.
        graph: the graph's name, where no server says it.
        turn: the run that began the turn, as state holds it; stands for the run where neither it nor its
            thread has an id.
    """
    info, server, config = runtime.execution_info, runtime.server_info, _config()
    # A run that a server begins again has no id of LangGraph's. Never the metadata's: callers send those.
    begun_again = config.get("configurable", {}).get("run_id") if server else None
    run = info.run_id or begun_again or info.thread_id or (turn if _is_name(turn) else info.task_id)
    return Owner(
        graph=server.graph_id if server else graph,
        thread=info.thread_id or _PROCESS,
        run=run,
        task=info.task_id,
        turn=turn if _is_name(turn) else run,
        home="server" if server else "process",
        retried=is_retried(config.get("metadata")),
        threadless=not keeps_checkpoints(),
        chain=str(getattr(config.get("callbacks"), "parent_run_id", None) or ""),
    )


def _is_name(turn: object) -> bool:
    """Whether state's word for the turn can be metadata of a sandbox; clients can write it."""
    return isinstance(turn, str) and 0 < len(turn) <= MAX_TURN_CHARS and turn.isprintable()


def is_retried(metadata: Mapping[str, Any] | None) -> bool:
    """Whether a run's metadata, where a server writes it over what callers send, say it was begun before."""
    return int((metadata or {}).get("run_attempt") or 1) > 1


def keeps_checkpoints() -> bool:
    """Whether the run that asks writes checkpoints, so that it can stop at a question and be resumed.

    A server's runs without a thread do not (langgraph-api 0.16.7: `POST /runs/wait`, a tool call by MCP), nor
    do those of a graph that was compiled without a checkpointer.
    """
    # langgraph's own key: a graph below another finds there what keeps the checkpoints of both.
    return _config().get("configurable", {}).get("__pregel_checkpointer") is not None


def _config() -> Mapping[str, Any]:
    try:
        return get_config()
    except RuntimeError:  # outside a run
        return {}
