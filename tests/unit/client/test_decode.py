"""Raw stream parts become typed events."""

from typing import Any

import pytest
from langgraph_sdk.schema import StreamPart

from agent.client import (
    Artifact,
    Custom,
    Event,
    Interrupt,
    Progress,
    SandboxNotice,
    Started,
    TestReport,
    Tests,
    Token,
    ToolEvent,
    Update,
)
from agent.client.decode import decode, interrupts, message_text

REPORT = {"exit_code": 1, "timed_out": False, "passed": 3, "failed": 1, "failing": ["t.py::a"], "output": "F"}

CASES: list[tuple[str, Any, list[Event]]] = [
    ("metadata", {"run_id": "r1", "attempt": 2}, [Started("t1", "r1", 2)]),
    (
        "custom",
        {
            "type": "progress",
            "phase": "plan",
            "message": "Planning",
            "iteration": 1,
            "step": None,
            "steps": None,
        },
        [Progress("plan", "Planning", 1)],
    ),
    (
        "custom|execute:6f1c",
        {"type": "progress", "phase": "execute", "message": "go", "iteration": 1, "step": 1, "steps": 2},
        [Progress("execute", "go", 1, 1, 2)],
    ),
    (
        "custom",
        {"type": "tests", "phase": "baseline", "report": REPORT},
        [Tests("baseline", TestReport(1, False, 3, 1, ("t.py::a",), "F"))],
    ),
    ("custom", {"type": "tests", "phase": "verify"}, [Tests("verify", TestReport())]),
    (
        "custom",
        {"type": "sandbox", "event": "created", "sandbox_id": "s1", "message": "made"},
        [SandboxNotice("created", "s1", "made")],
    ),
    (
        "custom|tools:1",
        {"type": "tool", "event": "output", "name": "run_command", "tool_call_id": "c", "text": "x\n"},
        [ToolEvent("output", "run_command", "c", "x\n")],
    ),
    (
        "custom|tools:1",
        {"type": "tool", "event": "start", "name": "f", "tool_call_id": "c", "args": {"path": "é"}},
        [ToolEvent("start", "f", "c", '{"path": "é"}')],
    ),
    (
        "custom",
        {"type": "tool", "event": "heartbeat", "name": "f", "tool_call_id": "c", "elapsed_s": 20},
        [ToolEvent("heartbeat", "f", "c", elapsed_s=20)],
    ),
    ("custom", {"type": "tool", "event": "else"}, [Custom({"type": "tool", "event": "else"})]),
    (
        "custom",
        {
            "type": "artifact",
            "tool_call_id": "c",
            "result": 0,
            "name": "0a.png",
            "mime": "image/png",
            "size_bytes": 9,
            "title": "image 1",
            "url": "http://server/artifacts/t1/0a.png?expires=1&signature=s",
        },
        [
            Artifact(
                "image/png",
                "0a.png",
                "http://server/artifacts/t1/0a.png?expires=1&signature=s",
                "image 1",
                9,
                "c",
            )
        ],
    ),
    ("custom", {"type": "chart"}, [Custom({"type": "chart"})]),
    ("custom", "words", [Custom("words")]),
    (
        "messages|execute:1",
        [{"type": "AIMessageChunk", "content": "He", "id": "m1"}, {"langgraph_node": "model"}],
        [Token("He", "model", "m1")],
    ),
    ("messages", [{"type": "ai", "content": "Done", "id": "m2"}, {}], [Token("Done", "", "m2", whole=True)]),
    ("messages", [{"type": "AIMessageChunk", "content": "", "id": "m1"}, {}], []),
    ("messages", [{"type": "human", "content": "hi"}, {}], []),
    (
        "messages",
        [{"type": "tool", "content": "exit_code: 0", "name": "run_command", "tool_call_id": "c"}, {}],
        [ToolEvent("result", "run_command", "c", "exit_code: 0")],
    ),
    ("updates", {"plan": {"plan": {}}}, [Update("plan", {"plan": {}})]),
    ("updates", {"__interrupt__": [{"id": "i", "value": 1}]}, []),
    ("updates|execute:1", {"model": {"messages": []}}, []),
    ("heartbeat", None, []),
    ("error", {"error": "E", "message": "m"}, []),
]


@pytest.mark.parametrize(("name", "data", "expected"), CASES)
def test_decode_gives_the_events_of_a_part(name: str, data: Any, expected: list[Event]) -> None:
    """Each kind of part has its events, with and without a namespace; parts without news have none."""
    assert list(decode(StreamPart(name, data), "t1")) == expected


def test_message_text_joins_the_text_blocks() -> None:
    """Reasoning and other blocks are left out."""
    blocks = [{"type": "reasoning", "summary": []}, {"type": "text", "text": "a"}, "b"]
    assert message_text(blocks) == "ab"


def test_interrupts_skips_what_has_no_id() -> None:
    """A question without an id cannot be answered."""
    assert interrupts([{"id": "i", "value": 1}, {"value": 2}]) == (Interrupt("i", 1),)
    assert interrupts(None) == ()


def test_report_green_needs_exit_code_zero() -> None:
    """A suite that was stopped by its limit is not green."""
    assert TestReport(exit_code=0).green
    assert not TestReport(exit_code=None, timed_out=True).green
    assert not TestReport(exit_code=0, timed_out=True).green
