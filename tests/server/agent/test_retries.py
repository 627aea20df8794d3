"""A sandbox that is silent for a moment: what only looks is asked again, what may have run is told."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from agent.context import Context
from server.agent.conftest import MakeAgent
from support.e2b_process import E2BLocal
from support.openai_server import start_openai_server
from support.scripted_rules import model_of_rules

LOOK: dict[str, Any] = {"tool": "glob", "args": {"pattern": "*.none"}}
WRITE: dict[str, Any] = {"tool": "write_file", "args": {"path": "a", "content": "b"}}
SILENT = "error: the sandbox did not answer: injected fault"


@pytest.mark.parametrize(
    ("call", "said", "asked"),
    [(LOOK, "(nothing matches)", 2), (LOOK, SILENT, 3), (WRITE, SILENT, 1)],
)
async def test_what_only_looks_is_asked_again(
    make_agent: MakeAgent, sandboxes: E2BLocal, call: dict[str, Any], said: str, asked: int
) -> None:
    """Two silences cost a search nothing, a third is told; a write is told at once."""
    rules = [{"name": "call", "when": {"after": "human"}, "call": call}, {"name": "bye", "say": "Bye."}]
    sandboxes.inject("status", "process.Process/Start", status=502, times=asked)
    with start_openai_server(model_of_rules(rules)) as openai:
        agent = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna")
        state = await agent.ainvoke(
            {"messages": [HumanMessage("go")]},
            {"configurable": {"thread_id": f"silent-{asked}"}},
            context=Context(),
        )
    (answer,) = [message for message in state["messages"] if message.type == "tool"]
    assert answer.text.startswith(said)
    assert state["messages"][-1].text == "Bye."
    assert [fault["hits"] for fault in sandboxes.faults()] == [asked]
    sandboxes.clear_faults()
