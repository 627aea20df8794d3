"""What a graph asks for, and the answers it takes: the shape that LangGraph's chat front ends share.

A question's value is `{"action_requests": [{"name", "args", "description"}], "review_configs":
[{"action_name", "allowed_decisions"}]}`, its answer `{"decisions": [‹one an action, in order›]}`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.client.fields import objects

Decision = dict[str, Any]
Answer = dict[str, Any]

_HASHES = ("plan_hash", "actions_hash")  # of what was shown; an answer that repeats one is checked by it
_PLAN = frozenset({"summary", "steps"})
_STEP = frozenset({"file", "change", "reason"})
_USUAL = ("approve", "reject")  # where a question does not say what it allows


@dataclass(frozen=True, slots=True)
class Action:
    """One thing the graph wants to do, and which decisions on it are allowed."""

    name: str
    args: Mapping[str, Any]
    description: str = ""
    allowed: tuple[str, ...] = _USUAL

    @property
    def is_plan(self) -> bool:
        """Whether it is a plan, and nothing else that would be carried out without being shown."""
        steps = self.args.get("steps")
        return (
            self.args.keys() <= _PLAN
            and isinstance(steps, list)
            and all(isinstance(step, Mapping) and step.keys() <= _STEP for step in steps)
        )


def actions(value: Any) -> list[Action]:
    """Return what a question asks about; empty when it has another shape."""
    if not isinstance(value, Mapping):
        return []
    allowed = {
        str(config.get("action_name")): _texts(config.get("allowed_decisions")) or _USUAL
        for config in objects(value.get("review_configs"))
    }
    return [
        Action(
            name=str(action.get("name") or ""),
            args=action["args"] if isinstance(action.get("args"), Mapping) else {},
            description=str(action.get("description") or ""),
            allowed=allowed.get(str(action.get("name")), _USUAL),
        )
        for action in objects(value.get("action_requests"))
    ]


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def answer(value: Any, decide: Callable[[Action], Decision]) -> Answer:
    """Return the answer with one decision an action, bound to what was shown."""
    made: Answer = {"decisions": [decide(action) for action in actions(value)]}
    return made | {name: value[name] for name in _HASHES if isinstance(value, Mapping) and value.get(name)}


def approval(action: Action) -> Decision:
    """Do it as asked."""
    return {"type": "approve"}


def rejection(words: str = "") -> Decision:
    """Do not do it; `words` say why."""
    return {"type": "reject", "message": words} if words else {"type": "reject"}


def edition(action: Action, arguments: Mapping[str, Any]) -> Decision:
    """Do it with other arguments."""
    return {"type": "edit", "edited_action": {"name": action.name, "args": dict(arguments)}}


def response(words: str) -> Decision:
    """Do not do it: `words` are its result."""
    return {"type": "respond", "message": words}
