"""From raw stream parts to events: pure functions, no server needed."""

import json
from collections.abc import Iterator, Mapping
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
from agent.client.fields import FieldError, deep, identifier, listed, number_or_none, text, whole

_MOST_QUESTIONS = 1000  # of one thread
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

    Raises:
        FieldError: an id is none, or the part is deeper than any server's.
    """
    if deep(part.data):
        raise FieldError("an event is deeper than any run's")
    # With subgraphs the name carries the namespace: `custom|execute:6f1c…`.
    kind, _, namespace = part.event.partition("|")
    data = cast("Any", part.data)
    if kind == "metadata" and isinstance(data, Mapping):
        run_id = identifier(data["run_id"], "the run's id") if data.get("run_id") else ""
        yield Started(thread_id, run_id, whole(data.get("attempt"), 1))
    elif kind == "custom":
        yield _custom(data)
    elif kind == "messages" and isinstance(data, list) and data:
        yield from _message(data[0], data[1] if len(data) > 1 else {})
    elif kind == "updates" and not namespace and isinstance(data, Mapping):
        yield from (Update(node, values) for node, values in data.items() if node != "__interrupt__")


def interrupts(found: Any) -> tuple[Interrupt, ...]:
    """Read the open questions out of a thread state's `interrupts`.

    Raises:
        FieldError: they are no list of objects, or one has an id that is none.
    """
    asked = (
        item for item in listed(found or [], "the list of questions", most=_MOST_QUESTIONS) if item.get("id")
    )
    return tuple(Interrupt(identifier(item["id"], "a question's id"), item.get("value")) for item in asked)


def test_report(data: Any) -> TestReport:
    """Read a test report; missing fields take their defaults, unknown ones are ignored."""
    if not isinstance(data, Mapping):
        return TestReport()
    failing = data.get("failing")
    return TestReport(
        exit_code=number_or_none(data.get("exit_code")),
        timed_out=bool(data.get("timed_out")),
        passed=number_or_none(data.get("passed")),
        failed=number_or_none(data.get("failed")),
        failing=tuple(name for name in failing if isinstance(name, str)) if isinstance(failing, list) else (),
        output=text(data.get("output")),
        skipped=number_or_none(data.get("skipped")),
        reason=text(data.get("reason")),
    )


test_report.__test__ = False  # type: ignore[attr-defined]  # pytest would collect the name


def _custom(data: Any) -> Event:
    if not isinstance(data, Mapping):
        return Custom(data)
    match data.get("type"):
        case "progress":
            return Progress(
                phase=_field(data, "phase"),
                message=_field(data, "message"),
                iteration=whole(data.get("iteration")),
                step=number_or_none(data.get("step")),
                steps=number_or_none(data.get("steps")),
            )
        case "tests":
            return Tests(_field(data, "phase"), test_report(data.get("report")))
        case "artifact" if data.get("name"):
            return Artifact(
                name=_field(data, "name"),
                mime=_field(data, "mime"),
                size_bytes=whole(data.get("size_bytes")),
                title=_field(data, "title"),
                url=_field(data, "url"),
                tool_call_id=_field(data, "tool_call_id"),
            )
        case "sandbox":
            return SandboxNotice(_field(data, "event"), _field(data, "sandbox_id"), _field(data, "message"))
        case "tool" if text(data.get("event")) in _TOOL_EVENTS:
            return ToolEvent(
                event=data["event"],
                name=_field(data, "name"),
                tool_call_id=_field(data, "tool_call_id"),
                text=_tool_text(data),
                elapsed_s=whole(data.get("elapsed_s")),
            )
    return Custom(data)


def _tool_text(data: Mapping[str, Any]) -> str:
    if "args" in data and not data.get("text"):
        return json.dumps(data["args"], ensure_ascii=False)
    return _field(data, "text")


def _message(message: Any, metadata: Any) -> Iterator[Event]:
    if not isinstance(message, Mapping):
        return
    said = message_text(message.get("content"))
    kind = text(message.get("type"))
    node = text(metadata.get("langgraph_node")) if isinstance(metadata, Mapping) else ""
    if kind in {"AIMessageChunk", "ai"} and said:
        yield Token(said, node, text(message.get("id")), whole=kind == "ai")
    elif kind == "tool":
        call = text(message.get("tool_call_id"))
        yield ToolEvent("result", text(message.get("name")), call, said)


def message_text(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content)
    return "".join(block if isinstance(block, str) else _block_text(block) for block in content)


def _block_text(block: Any) -> str:
    return text(block.get("text")) if isinstance(block, Mapping) else ""


def _field(data: Mapping[str, Any], key: str) -> str:
    return text(data.get(key))
