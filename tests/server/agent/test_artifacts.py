"""Charts and tables of the agent: kept once, linked in the text, shown to models that see."""

import base64
import json
import re
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore

from agent.artifacts.images import MAX_IMAGES, SHOWN
from agent.artifacts.shelf import Shelf
from agent.context import Context
from server.agent.conftest import MakeAgent
from support.openai_server import start_openai_server
from support.scripted_rules import model_of_rules

CELL = """
import matplotlib.pyplot as plt, pandas as pd
plt.plot([1, 2]); plt.show()
display(pd.DataFrame({"a": [1, 2]}))
plt.plot([2, 1]); plt.show()
"""
RULES = [
    {"name": "seen", "when": {"human": f"^{SHOWN[:20]}"}, "say": "I see them."},
    {
        "name": "more",
        "when": {"human": "draw", "after": "human"},
        "call": {"tool": "run_python", "args": {"code": CELL}},
    },
    {"name": "blind", "when": {"after": "run_python"}, "say": "I see nothing."},
    {"name": "bye", "say": "Bye."},
]
APIS = {
    "responses": {"MODEL": "openai:gpt-5.6-luna"},
    "chat": {"MODEL": "openai:gpt-4.1", "OPENAI_USE_RESPONSES_API": "false"},
}


def config(thread: str) -> Any:
    """Return the configuration of a thread."""
    return {"configurable": {"thread_id": thread}}


def _three(human: str, last: int) -> dict[str, Any]:
    """Return a rule that draws three charts, which a different last number makes different."""
    code = f"import matplotlib.pyplot as plt\nfor n in range(3):\n    plt.plot([n, {last}]); plt.show()"
    when = {"human": human, "after": "human"}
    return {"name": human, "when": when, "call": {"tool": "run_python", "args": {"code": code}}}


@pytest.mark.parametrize("api", APIS)
async def test_charts_are_kept_linked_and_shown_to_a_model_that_sees(
    make_agent: MakeAgent, store: InMemoryStore, api: str
) -> None:
    """Two figures and a table of one cell, in order (A29), both APIs (A30); no bytes in state (A59)."""
    with start_openai_server(model_of_rules(RULES)) as openai:
        agent = make_agent(**openai.env, **APIS[api])
        events = []
        async for mode, part in agent.astream(
            {"messages": [HumanMessage("draw")]},
            config("one"),
            context=Context(),
            # With tokens wanted, the model is asked to stream.
            stream_mode=["custom", "values", "messages"],
        ):
            if mode == "custom" and part["type"] == "artifact":
                events.append(part)
            elif mode == "values":
                state = part
        sent = openai.requests
    assert state["messages"][-1].text == "I see them."
    tool = state["messages"][2]
    entries = tool.artifact["artifacts"]
    assert [(one["result"], one["mime"]) for one in entries] == [
        (0, "image/png"),
        (0, "application/vnd.e2b.chart+json"),
        (1, "text/html"),
        (2, "image/png"),
        (2, "application/vnd.e2b.chart+json"),
    ]
    assert "<table" in entries[2]["text"]
    links = re.findall(
        r"^!\[image (\d)\]\((http://server/artifacts/one/(\S+)\?\S+)\)$", tool.text, re.MULTILINE
    )
    assert [number for number, _, _ in links] == ["1", "2"]
    assert [(event["url"], event["name"]) for event in events] == [(url, name) for _, url, name in links]
    kept = [await Shelf(store, "one").bytes_of(name) for _, _, name in links]
    images = [base64.b64encode(found[0]).decode() for found in kept if found]
    assert all(request["stream"] for request in sent)
    # What the model was sent: both images, once each, behind the answer of the tool.
    last = json.dumps(sent[-1])
    assert [last.count(image) for image in images] == [1, 1]
    assert images[0][:100] not in json.dumps(sent[0])
    # What was checkpointed: none.
    checkpoint = repr(await agent.checkpointer.aget(config("one")))  # type: ignore[union-attr]
    assert images[0][:100] not in checkpoint
    assert len(checkpoint) < 10_000


async def test_the_newest_images_alone_are_shown_again(make_agent: MakeAgent, store: InMemoryStore) -> None:
    """A later turn's requests hold the newest images; the same bytes drawn again are one image."""
    rules = [RULES[0], _three("first", 5), _three("second", 6), RULES[-1]]
    with start_openai_server(model_of_rules(rules)) as openai:
        agent = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna")
        for text in ("first", "first", "second"):
            await agent.ainvoke({"messages": [HumanMessage(text)]}, config("two"), context=Context())
        shown = [json.dumps(request).count("data:image/png") for request in openai.requests]
    assert shown == [0, 3, 3, 3, 3, MAX_IMAGES]
    assert len(await Shelf(store, "two").references()) == 6


async def test_a_model_that_takes_no_images_gets_none(make_agent: MakeAgent) -> None:
    """A text-only model is sent text: valid, and the chart is named in it."""
    with start_openai_server(model_of_rules(RULES)) as openai:
        agent = make_agent(**openai.env, MODEL="openai:o3-mini")
        state = await agent.ainvoke({"messages": [HumanMessage("draw")]}, config("three"), context=Context())
        assert "data:image" not in json.dumps(openai.requests)
    assert state["messages"][-1].text == "I see nothing."
    assert "![image 1](http://server/" in state["messages"][2].text


async def test_without_a_store_a_chart_is_said_to_be_lost(
    make_agent: MakeAgent, store: InMemoryStore
) -> None:
    """In a program that gives no store: said so, no bytes in state, and the run goes on."""
    agent = make_agent(MODEL="scripted:chat")
    agent.store = None
    state = await agent.ainvoke(
        {"messages": [HumanMessage("Draw a bar chart of 3, 1 and 2")]}, config("four"), context=Context()
    )
    tool = next(message for message in state["messages"] if message.type == "tool")
    assert re.search(r"\[image/png, \d+ bytes: not kept, this graph has no store\]", tool.text)
    assert tool.artifact["artifacts"][0]["missing"] == "this graph has no store"
    assert not store.search(("artifacts",))
