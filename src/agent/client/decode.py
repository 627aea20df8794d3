"""From raw stream parts to events: pure functions, no server needed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from langgraph_sdk.schema import StreamPart

from agent.client.events import (
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

_TOOL_EVENTS = frozenset({"start", "output", "heartbeat", "end"})


def decode(part: StreamPart, thread_id: str) -> Iterator[Event]:
    """Translate one part of a run's stream.

    Parts without news (heartbeats, empty tokens) give nothing. `__interrupt__` updates give nothing either:
    what a thread waits for is read from its state, which also knows what an earlier run left open.

    Args:
        part: what the SDK yields, in the modes `messages-tuple`, `custom` and `updates`.
        thread_id: the thread the stream belongs to.

    Yields:
        Zero or more events, in order.
    """
    # With subgraphs the name carries the namespace: `custom|execute:6f1c…`.
    kind, _, namespace = part.event.partition("|")
    data = cast("Any", part.data)
    if kind == "metadata" and isinstance(data, Mapping):
        yield Started(thread_id, str(data.get("run_id", "")), int(data.get("attempt") or 1))
    elif kind == "custom":
        yield _custom(data)
    elif kind == "messages" and isinstance(data, Sequence) and data:
        yield from _message(data[0], data[1] if len(data) > 1 else {})
    elif kind == "updates" and not namespace and isinstance(data, Mapping):
        yield from (Update(node, values) for node, values in data.items() if node != "__interrupt__")


def interrupts(found: Any) -> tuple[Interrupt, ...]:
    """Read the open questions out of a thread state's `interrupts`."""
    return tuple(Interrupt(str(item["id"]), item.get("value")) for item in found or () if item.get("id"))


def test_report(data: Any) -> TestReport:
    """Read a test report; missing fields take their defaults, unknown ones are ignored."""
    if not isinstance(data, Mapping):
        return TestReport()
    return TestReport(
        exit_code=data.get("exit_code"),
        timed_out=bool(data.get("timed_out")),
        passed=data.get("passed"),
        failed=data.get("failed"),
        failing=tuple(str(name) for name in data.get("failing") or ()),
        output=str(data.get("output") or ""),
    )


test_report.__test__ = False  # type: ignore[attr-defined]  # pytest would collect the name


def _custom(data: Any) -> Event:
    if not isinstance(data, Mapping):
        return Custom(data)
    match data.get("type"):
        case "progress":
            return Progress(
                phase=_text(data, "phase"),
                message=_text(data, "message"),
                iteration=int(data.get("iteration") or 0),
                step=data.get("step"),
                steps=data.get("steps"),
            )
        case "tests":
            return Tests(_text(data, "phase"), test_report(data.get("report")))
        case "artifact" if data.get("name"):
            return Artifact(
                name=_text(data, "name"),
                mime=_text(data, "mime"),
                size_bytes=int(data.get("size_bytes") or 0),
                title=_text(data, "title"),
                url=_text(data, "url"),
                tool_call_id=_text(data, "tool_call_id"),
            )
        case "sandbox":
            return SandboxNotice(_text(data, "event"), _text(data, "sandbox_id"), _text(data, "message"))
        case "tool" if data.get("event") in _TOOL_EVENTS:
            return ToolEvent(
                event=data["event"],
                name=_text(data, "name"),
                tool_call_id=_text(data, "tool_call_id"),
                text=_tool_text(data),
                elapsed_s=int(data.get("elapsed_s") or 0),
            )
    return Custom(data)


def _tool_text(data: Mapping[str, Any]) -> str:
    if "args" in data and not data.get("text"):
        return json.dumps(data["args"], ensure_ascii=False)
    return _text(data, "text")


def _message(message: Any, metadata: Any) -> Iterator[Event]:
    if not isinstance(message, Mapping):
        return
    text = message_text(message.get("content"))
    kind = message.get("type")
    node = str(metadata.get("langgraph_node", "")) if isinstance(metadata, Mapping) else ""
    if kind in {"AIMessageChunk", "ai"} and text:
        yield Token(text, node, str(message.get("id") or ""), whole=kind == "ai")
    elif kind == "tool":
        call = str(message.get("tool_call_id") or "")
        yield ToolEvent("result", str(message.get("name") or ""), call, text)


def message_text(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return "" if content is None else json.dumps(content)
    blocks = (block if isinstance(block, str) else block.get("text", "") for block in content)
    return "".join(block for block in blocks if isinstance(block, str))


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return "" if value is None else str(value)
