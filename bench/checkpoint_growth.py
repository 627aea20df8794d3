"""How much ten turns with charts add to a thread's checkpoints, beside the same turns without.

    python bench/checkpoint_growth.py [--turns 10]

Each turn runs one cell in a real sandbox of e2b-local and displays two PNG of about 500 KB, or prints their
size. Measured is what an in-memory checkpointer holds, serialized: checkpoints, channel values and pending
writes. Both with the stock channel for `messages` and with langgraph's DeltaChannel, which stores changes.
"""

from __future__ import annotations

import argparse
import asyncio
import pathlib
import sys
from typing import Annotated, Any

from langchain.agents import AgentState
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import _messages_delta_reducer
from langgraph.store.memory import InMemoryStore

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

from agent.context import Context
from agent.graphs.code_agent import code_agent
from agent.settings import Settings
from support.e2b_process import E2BLocal, isolation_arguments, start_e2b_local
from support.openai_server import start_openai_server
from support.scripted_rules import model_of_rules

CELL = """\
import io
import numpy as np
from PIL import Image
for seed in (2 * {turn}, 2 * {turn} + 1):
    noise = np.random.default_rng(seed).integers(0, 256, (410, 400, 3), dtype=np.uint8)
    image = Image.fromarray(noise)
    {show}
"""
SHOW = {
    "without": "file = io.BytesIO(); image.save(file, 'png'); print(file.tell(), 'bytes')",
    "with": "display(image)",
}


class DeltaState(AgentState[Any]):
    """The agent's state with messages stored as changes."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10)
    turns = parser.parse_args().turns
    server = start_e2b_local(*isolation_arguments())
    try:
        for name, schema in (("stock", None), ("DeltaChannel", DeltaState)):
            sizes = {kind: asyncio.run(growth(server, kind, turns, schema)) for kind in SHOW}
            without, charts = sizes["without"][-1] / turns, sizes["with"][-1] / turns
            print(f"{name} channel, {turns} turns of two charts:")
            print(f"  without charts  {without / 1024:8.1f} KB a turn")
            print(
                f"  with charts     {charts / 1024:8.1f} KB a turn, {(charts - without) / 1024:.1f} KB more"
            )
            print("  after each turn, with charts:", *(f"{size // 1024} KB" for size in sizes["with"]))
    finally:
        server.stop()


async def growth(server: E2BLocal, kind: str, turns: int, schema: type[Any] | None) -> list[int]:
    """Return the bytes of a thread's checkpoints after each turn."""
    cells = [CELL.format(turn=turn, show=SHOW[kind]) for turn in range(turns)]
    rules = [
        {
            "name": f"turn-{turn}",
            "when": {"human": f"turn {turn}$", "after": "human"},
            "call": {"tool": "run_python", "args": {"code": cell}},
        }
        for turn, cell in enumerate(cells)
    ]
    rules.append({"name": "done", "say": "Done."})  # type: ignore[dict-item]
    saver, sizes = InMemorySaver(), []
    # A model that sees: its requests hold the images, and nothing of that may reach the checkpoints.
    with start_openai_server(model_of_rules(rules)) as openai:
        env = {"DEPLOYMENT": "bench", "PUBLIC_URL": "https://agent.example.com", "SANDBOX_KEEP": "thread"}
        settings = Settings.from_env({**env, **server.env, **openai.env})
        agent = code_agent(settings, checkpointer=saver, store=InMemoryStore(), state_schema=schema)
        config: Any = {"configurable": {"thread_id": kind}}
        for turn in range(turns):
            state = await agent.ainvoke(
                {"messages": [HumanMessage(f"turn {turn}")]}, config, context=Context()
            )
            assert state["messages"][-1].text == "Done.", state["messages"][-1].text
            sizes.append(stored(saver))
    tools = [message for message in state["messages"] if message.type == "tool"]
    assert len(tools) == turns
    assert all("image 2" in message.text for message in tools) == (kind == "with"), tools[-1].text
    return sizes


def stored(saver: InMemorySaver) -> int:
    """Return the serialized bytes that a checkpointer holds."""
    checkpoints = (
        len(part[1])
        for thread in saver.storage.values()
        for namespace in thread.values()
        for saved in namespace.values()
        for part in saved[:2]
    )
    blobs = (len(value[1]) for value in saver.blobs.values())
    writes = (len(write[2][1]) for task in saver.writes.values() for write in task.values())
    return sum(checkpoints) + sum(blobs) + sum(writes)


if __name__ == "__main__":
    main()
