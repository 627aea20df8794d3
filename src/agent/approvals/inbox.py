"""The older shape of a question about one action, which some front ends still have.

The scaffold of npm's `create-agent-chat-app` and the Agent Inbox show buttons for
`{"action_request": {"action", "args"}, "config": {"allow_accept", "allow_edit", …}}` and answer
`[{"type": "accept" | "edit" | "response" | "ignore", "args"}]`. A question carries it beside the shape of
langchain's own middleware, and an answer in it is understood as one in the other.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from agent.bounded import parsed_json


def for_inboxes(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question that older front ends show too, if it is about one action; else as it is."""
    if len(question["action_requests"]) != 1:
        return dict(question)
    [action], [config] = question["action_requests"], question["review_configs"]
    allowed = set(config["allowed_decisions"])
    return {
        **question,
        "action_request": {"action": action["name"], "args": action["args"]},
        "config": {
            "allow_accept": "approve" in allowed,
            "allow_edit": "edit" in allowed,
            "allow_respond": bool(allowed & {"respond", "reject"}),
            "allow_ignore": "reject" in allowed,
        },
        "description": action.get("description", ""),
    }


def from_inbox(answer: Any, asked: Mapping[str, Any], allowed: Sequence[str]) -> Any:
    """Return an answer of the older shape in the newer one; anything else as it is, for others to judge.

    Args:
        answer: what a client sent.
        asked: the arguments of the action in question.
        allowed: what may be decided about it.
    """
    match answer:
        case [{"type": "accept"}]:
            decision: dict[str, Any] = {"type": "approve"}
        case [{"type": "edit", "args": {"action": name, "args": Mapping() as args}}]:
            decision = {"type": "edit", "edited_action": {"name": name, "args": _parsed(args, asked)}}
        case [{"type": "response", "args": str(words)}]:
            decision = {"type": "respond" if "respond" in allowed else "reject", "message": words}
        case [{"type": "ignore"}]:
            decision = {"type": "reject"}
        case _:
            return answer
    return {"decisions": [decision]}


def _parsed(args: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Undo what these front ends do to arguments that are no text: they edit, and send, their JSON."""
    parsed = dict(args)
    for name, value in args.items():
        if isinstance(value, str) and not isinstance(asked.get(name, ""), str):
            with contextlib.suppress(ValueError):
                parsed[name] = parsed_json(value.encode("utf-8", "surrogatepass"))
    return parsed
