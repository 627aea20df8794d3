"""A process of its own that runs a stretch of `plan_execute` on a durable checkpointer.

    python one_run.py DATABASE THREAD start|approve|go-on

Settings come from the environment; it prints the status the stretch ended with.
"""

import asyncio
import sys
from typing import Any

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from agent.context import Context
from agent.graphs.plan_execute import repair_graph
from agent.settings import Settings
from agent.wiring import sandbox_manager
from support.repairs import APPROVE, CALC, TEST_COMMAND


async def main(database: str, thread_id: str, stretch: str) -> None:
    """Run to the end or the next question."""
    given: Any = {
        "start": {"project": CALC, "test_command": TEST_COMMAND},
        "approve": Command(resume=APPROVE),
        "go-on": None,
    }[stretch]
    settings = Settings.from_env()
    async with AsyncSqliteSaver.from_conn_string(database) as saver:
        graph = repair_graph(settings, sandbox_manager(settings), saver)
        config: Any = {"configurable": {"thread_id": thread_id}}
        state = await graph.ainvoke(given, config, context=Context(), durability="sync")
    sys.stdout.write(str(state.get("status")))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
