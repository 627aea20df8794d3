"""Ask a human about what a graph wants to do."""

from collections.abc import Callable, Sequence
from typing import Any

from agent.cli.editing import edited_call, edited_plan
from agent.cli.question_view import show_action, show_question
from agent.cli.questions import (
    Action,
    Answer,
    Decision,
    actions,
    answer,
    approval,
    edition,
    rejection,
    response,
)
from agent.cli.screen import Screen
from agent.cli.visible import one_line
from agent.client import Interrupt

Decide = Callable[[Sequence[Interrupt]], dict[str, Answer] | None]

# In the order of the prompt.
_WORDS = {"approve": "[y]es", "edit": "[e]dit", "reject": "[n]o", "respond": "[r]espond instead"}
_ANSWERS = {
    "y": "approve",
    "yes": "approve",
    "e": "edit",
    "edit": "edit",
    "n": "reject",
    "no": "reject",
    "r": "respond",
    "respond": "respond",
}
_WHY_NOT = "  Why not? (Enter says nothing) "
_WHY_NOT_PLAN = "  Why not? (words are for the next plan, Enter ends the repair) "
_SHOW = frozenset({"s", "show"})
_SEEN_AT_ONCE = 3  # calls; of more each is shown again where it is asked about
_LONGEST_NAME = 60  # in a prompt


def asked(screen: Screen) -> Decide:
    """Return a decider that asks on the screen; only an explicit yes approves."""

    def decide(questions: Sequence[Interrupt]) -> dict[str, Answer] | None:
        answers = {question.id: _ask(screen, question.value) for question in questions}
        known = {name: given for name, given in answers.items() if given is not None}
        return known or None

    return decide


def automatic(screen: Screen, reason: str) -> Decide:
    """Return a decider that approves everything, and says so and why."""

    def decide(questions: Sequence[Interrupt]) -> dict[str, Answer]:
        for question in questions:
            show_question(screen, question.value)
            screen.line(f"  Approved automatically: {reason}", "yellow")
        return {question.id: answer(question.value, approval) for question in questions}

    return decide


def rejected(screen: Screen, words: str) -> Decide:
    """Return a decider that rejects what is asked first, and leaves open what is asked because of that."""
    said = False

    def decide(questions: Sequence[Interrupt]) -> dict[str, Answer] | None:
        nonlocal said
        for question in questions:
            show_question(screen, question.value)
        if said:
            return None
        said = True
        screen.line(f"  Rejected: {one_line(words)}" if words else "  Rejected.", "yellow")
        return {question.id: answer(question.value, lambda _: rejection(words)) for question in questions}

    return decide


def left_open(screen: Screen) -> Decide:
    """Return a decider that shows the questions and answers none."""

    def decide(questions: Sequence[Interrupt]) -> None:
        for question in questions:
            show_question(screen, question.value)

    return decide


def _ask(screen: Screen, value: Any) -> Answer | None:
    asked_about = actions(value)
    cuts = show_question(screen, value)
    if not asked_about:
        screen.line("  It has no shape that can be answered here; answer it through the SDK.", "yellow")
        return None
    total = len(asked_about)
    numbers = iter(range(1, total + 1))

    def decide(action: Action) -> Decision:
        number = next(numbers)
        if total > _SEEN_AT_ONCE:
            show_action(screen, action)
        which = f"{number} of {total}, {one_line(action.name, _LONGEST_NAME)}: "
        return _decision(screen, action, "" if total == 1 else which, cut=cuts[number - 1])

    return answer(value, decide)


def _decision(screen: Screen, action: Action, which: str, *, cut: bool) -> Decision:
    allowed = [decision for decision in _WORDS if decision in action.allowed]
    title = "Carry out this plan?" if action.is_plan else "Allow this?"
    choices = [*(_WORDS[decision] for decision in allowed), *(["[s]how all of it"] if cut else [])]
    question = f"  {which}{title} {', '.join(choices)}: "
    while True:
        typed = screen.ask(question)
        if cut and typed.lower() in _SHOW:
            show_action(screen, action, whole=True)
            continue
        said = _ANSWERS.get(typed.lower())
        if said not in allowed:
            problem = f"{typed!r} is no answer here. " if typed else ""
            screen.line(f"  {problem}Type {_accepted(allowed)}.", "yellow")
            continue
        if said == "approve":
            return approval(action)
        if said == "reject":
            return rejection(screen.ask(_WHY_NOT_PLAN if action.is_plan else _WHY_NOT))
        if said == "respond":
            if words := screen.ask("  What is its result to be? (Enter goes back) "):
                return response(words)
            continue
        edit = edited_plan if action.is_plan else edited_call
        arguments = edit(screen, action.args)
        if arguments is not None:
            return edition(action, arguments)


def _accepted(allowed: Sequence[str]) -> str:
    return ", ".join(
        " or ".join(typed for typed, decision in _ANSWERS.items() if decision == each) for each in allowed
    )
