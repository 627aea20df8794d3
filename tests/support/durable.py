"""A checkpointer on a file for `langgraph dev`, which then forgets no checkpoint when it is killed."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


@asynccontextmanager
async def checkpointer() -> AsyncIterator[AsyncSqliteSaver]:
    """Open the file that the variable `CHECKPOINTS` names."""
    async with AsyncSqliteSaver.from_conn_string(os.environ["CHECKPOINTS"]) as saver:
        yield saver
