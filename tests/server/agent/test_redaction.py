"""A secret that a sandbox was given is printed, written, drawn and raised: nothing of it is shown."""

import json
import os

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore

from agent.artifacts.shelf import Shelf
from agent.context import Context
from server.agent.conftest import MakeAgent
from support.e2b_process import isolation_missing
from support.openai_server import start_openai_server
from support.scripted_rules import model_of_rules

VALUE = "tok-5c1f0e-of-the-test"
CELL = """\
import os, sys, time
from IPython.display import HTML, display
token = os.environ["TEST_TOKEN"]
for part in (token[:7], token[7:] + "\\n"):
    print(part, end="", flush=True)
    time.sleep(0.3)
print("in stderr", token, file=sys.stderr)
display(HTML(f"<b>{token}</b>" + "<i></i>" * 1000))
open(os.path.expanduser("~/token.txt"), "w").write(token)
raise ValueError(token)
"""
COMMAND = "env; cat /proc/*/environ; cat token.txt"
RULES = [
    {"name": "cell", "when": {"after": "human"}, "call": {"tool": "run_python", "args": {"code": CELL}}},
    {
        "name": "env",
        "when": {"after": "run_python"},
        "call": {"tool": "run_command", "args": {"command": COMMAND}},
    },
    {
        "name": "file",
        "when": {"after": "run_command"},
        "call": {"tool": "read_file", "args": {"path": "token.txt"}},
    },
    {"name": "done", "say": "Done."},
]


async def test_a_secret_is_redacted_wherever_it_is_shown(
    make_agent: MakeAgent, store: InMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In messages, cut live output, artifacts, requests (A63); the host's keys are not there (A62)."""
    monkeypatch.setenv("TEST_TOKEN", VALUE)
    with start_openai_server(model_of_rules(RULES)) as openai:
        env = {**openai.env, "MODEL": "openai:gpt-5.6-luna", "SANDBOX_ENVS": "TEST_TOKEN"}
        agent = make_agent(**env, TEST_TOKEN=VALUE)
        shown = []
        async for mode, part in agent.astream(
            {"messages": [HumanMessage("go")]},
            {"configurable": {"thread_id": "redaction"}},
            context=Context(),
            stream_mode=["custom", "values"],
        ):
            if mode == "custom":
                shown.append(part)
            else:
                state = part
        sent = json.dumps(openai.requests)
    cell, command, file = [message for message in state["messages"] if message.type == "tool"]
    assert "[TEST_TOKEN redacted]" in cell.text
    assert "ValueError: [TEST_TOKEN redacted]" in cell.text
    assert "TEST_TOKEN=[TEST_TOKEN redacted]" in command.text
    assert "[TEST_TOKEN redacted]" in file.text
    kept = await Shelf(store, "redaction").references()
    page = await Shelf(store, "redaction").bytes_of(kept[0]["name"])
    assert page
    assert page[0].startswith(b"<b>[TEST_TOKEN redacted]</b>")
    live = "".join(one["text"] for one in shown if one.get("event") == "output" and one["stream"] == "stdout")
    assert live.startswith("[TEST_TOKEN redacted]\n")
    everything = "".join([sent, repr(state), json.dumps(shown), page[0].decode()])
    assert VALUE not in everything
    assert VALUE[7:] not in everything
    # Without isolation what runs as root reads the variables of every process.
    for name in ("E2B_API_KEY", "OPENAI_API_KEY") if isolation_missing() is None else ():
        assert env.get(name, os.environ.get(name, name)) not in command.text
        assert f"{name}=" not in command.text
