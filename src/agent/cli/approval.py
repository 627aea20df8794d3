"""Ask a human about a plan, and word the answer as the graph expects it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent.cli.plan_edit import edited
from agent.cli.repair_text import plan_table
from agent.cli.screen import Screen
from agent.client import Interrupt

Answer = dict[str, Any]
Decide = Callable[[Sequence[Interrupt]], dict[str, Answer] | None]

_WORDS = {"approve": "[y]es", "edit": "[e]dit", "reject": "[n]o"}
_ANSWERS = {"y": "approve", "yes": "approve", "e": "edit", "edit": "edit", "n": "reject", "no": "reject"}


def asked(screen: Screen) -> Decide:
    """Return a decider that asks on the screen; only an explicit yes approves."""

    def decide(questions: Sequence[Interrupt]) -> dict[str, Answer]:
        return {question.id: _ask(screen, question.value) for question in questions}

    return decide


def automatic(screen: Screen, reason: str) -> Decide:
    """Return a decider that approves everything, and says so and why."""

    def decide(questions: Sequence[Interrupt]) -> dict[str, Answer]:
        for question in questions:
            show_question(screen, question.value)
            screen.line(f"  Approved automatically: {reason}", "yellow")
        return {question.id: approve(question.value) for question in questions}

    return decide


def left_open(screen: Screen) -> Decide:
    """Return a decider that shows the questions and answers none."""

    def decide(questions: Sequence[Interrupt]) -> None:
        for question in questions:
            show_question(screen, question.value)

    return decide


def approve(value: Any) -> Answer:
    """Return the answer that approves everything asked, bound to what was shown."""
    return _bound(value, [{"type": "approve"} for _ in _actions(value)])


def reject(value: Any, words: str = "") -> Answer:
    """Return the answer that rejects everything asked, with the reason in words if there is one."""
    decision = {"type": "reject", "message": words} if words else {"type": "reject"}
    return _bound(value, [dict(decision) for _ in _actions(value)])


def edit(value: Any, arguments: Mapping[str, Any]) -> Answer:
    """Return the answer that carries out the one action asked about with other arguments."""
    (action,) = _actions(value)
    changed = {"name": action.get("name"), "args": dict(arguments)}
    return _bound(value, [{"type": "edit", "edited_action": changed}])


def show_question(screen: Screen, value: Any) -> None:
    """Show what is asked: a plan as a table, anything else by its description."""
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
    if not _actions(value):
        screen.line(f"  {value}")


def _bound(value: Any, decisions: list[dict[str, Any]]) -> Answer:
    answer: Answer = {"decisions": decisions}
    if isinstance(value, Mapping) and value.get("plan_hash"):
        answer["plan_hash"] = value["plan_hash"]
    return answer


def _actions(value: Any) -> list[Mapping[str, Any]]:
    found = value.get("action_requests") if isinstance(value, Mapping) else None
    return [action for action in found or [] if isinstance(action, Mapping)]


def _title(value: Any) -> str:
    return (
        "Carry out this plan?"
        if any("steps" in (a.get("args") or {}) for a in _actions(value))
        else "Allow this?"
    )


def _allowed(value: Any) -> list[str]:
    """Return which decisions every action asked about allows, in the order of the prompt."""
    configs = value.get("review_configs") if isinstance(value, Mapping) else None
    allowed = [set(config.get("allowed_decisions") or ()) for config in configs or []]
    common = set.intersection(*allowed) if allowed else {"approve", "reject"}
    if len(_actions(value)) != 1:
        common -= {"edit"}
    return [decision for decision in _WORDS if decision in common]


def _ask(screen: Screen, value: Any) -> Answer:
    show_question(screen, value)
    allowed = _allowed(value)
    question = f"  {_title(value)} {', '.join(_WORDS[decision] for decision in allowed)}: "
    while True:
        decision = _ANSWERS.get(screen.ask(question).lower())
        if decision not in allowed:
            continue
        if decision == "approve":
            return approve(value)
        if decision == "reject":
            return reject(value, screen.ask("  Why not? (Enter to say nothing) "))
        arguments = edited(screen, _actions(value)[0].get("args") or {})
        if arguments is not None:
            return edit(value, arguments)
