"""On whose behalf a node or tool runs."""

import uuid
from typing import Any

from agent.sandbox.manager import Owner

_PROCESS = f"process-{uuid.uuid4()}"


def owner_of(runtime: Any, graph: str = "agent", *, run: str = "") -> Owner:
    """Return the owner that a runtime stands for.

    Outside a server a run may have no id, and without a checkpointer no thread either. State then never
    leaves this process, and its sandboxes are marked as the process's own.

    Args:
        runtime: a LangGraph `Runtime` or a tool's `ToolRuntime`.
        graph: the graph's name, where no server says it.
        run: what stands for the run's id where neither it nor its thread has one.
    """
    info, server = runtime.execution_info, runtime.server_info
    return Owner(
        graph=server.graph_id if server else graph,
        thread=info.thread_id or _PROCESS,
        run=info.run_id or info.thread_id or run or info.task_id,
        task=info.task_id,
    )
