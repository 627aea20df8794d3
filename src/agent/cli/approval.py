"""Ask a human about a plan, and word the answer as the graph expects it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent.cli.repair_text import plan_table
from agent.cli.screen import Screen
from agent.client import Interrupt

Answer = dict[str, Any]
Decide = Callable[[Sequence[Interrupt]], dict[str, Answer]]

_QUESTION = "  Carry out this plan? [y]es, [n]o: "
_YES = frozenset({"y", "yes"})
_NO = frozenset({"n", "no"})


def asked(screen: Screen) -> Decide:
    """Return a decider that asks on the screen; only an explicit yes approves."""

    def decide(questions: Sequence[Interrupt]) -> dict[str, Answer]:
        return {question.id: _ask(screen, question.value) for question in questions}

    return decide


def automatic(screen: Screen, reason: str) -> Decide:
    """Return a decider that approves everything, and says so and why."""

    def decide(questions: Sequence[Interrupt]) -> dict[str, Answer]:
        for question in questions:
            _show(screen, question.value)
            screen.line(f"  Approved automatically: {reason}", "yellow")
        return {question.id: approve(question.value) for question in questions}

    return decide


def approve(value: Any) -> Answer:
    """Return the answer that approves everything asked, bound to what was shown."""
    return _bound(value, [{"type": "approve"} for _ in _actions(value)])


def reject(value: Any, words: str = "") -> Answer:
    """Return the answer that rejects everything asked, with the reason in words if there is one."""
    decision = {"type": "reject", "message": words} if words else {"type": "reject"}
    return _bound(value, [dict(decision) for _ in _actions(value)])


def _bound(value: Any, decisions: list[dict[str, Any]]) -> Answer:
    answer: Answer = {"decisions": decisions}
    if isinstance(value, Mapping) and value.get("plan_hash"):
        answer["plan_hash"] = value["plan_hash"]
    return answer


def _actions(value: Any) -> list[Mapping[str, Any]]:
    found = value.get("action_requests") if isinstance(value, Mapping) else None
    return [action for action in found or [] if isinstance(action, Mapping)]


def _ask(screen: Screen, value: Any) -> Answer:
    _show(screen, value)
    while True:
        said = screen.ask(_QUESTION).lower()
        if said in _YES:
            return approve(value)
        if said in _NO:
            return reject(value, screen.ask("  What should be different? (Enter to say nothing) "))


def _show(screen: Screen, value: Any) -> None:
    iteration = value.get("iteration") if isinstance(value, Mapping) else None
    screen.heading(f"Plan (try {iteration})" if isinstance(iteration, int) and iteration > 1 else "Plan")
    for action in _actions(value):
        arguments = action.get("args")
        if isinstance(arguments, Mapping) and "steps" in arguments:
            screen.line(f"  {arguments.get('summary', '')}")
            screen.line()
            screen.show(plan_table(arguments))
            screen.line()
        else:
            screen.line(f"  {action.get('description') or action.get('name')}")
