"""Plans and carries out the repair of the bundled project, `broken_shop`: it knows which two lines are wrong.

It plans a step only for a line that it is shown, in the file and in the failing tests.
It reports what it saw.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.scripted.conversation import HUMAN, Answer, Conversation, search


@dataclass(frozen=True)
class Mistake:
    """A wrong line of a module, and what is said about it."""

    module: str
    wrong: str
    right: str
    change: str
    reason: str
    remark: str


MISTAKES = (
    Mistake(
        module="pricing",
        wrong="        if quantity > pieces:\n",
        right="        if quantity >= pieces:\n",
        change="Let a discount tier begin at its own number of pieces (`>=` instead of `>`).",
        reason="`quantity > pieces` leaves out the boundary, so exactly 10 or 50 pieces get the discount "
        "of the tier below.",
        remark="The comparison leaves out the boundary; I let each tier begin at its own number of pieces.",
    ),
    Mistake(
        module="basket",
        wrong="        order = Order(self.lines)\n",
        right="        order = Order(dict(self.lines))\n",
        change="Give the order a copy of the basket's lines (`dict(self.lines)`).",
        reason="the order holds the basket's own dict, which `checkout` clears on the next line and later "
        "purchases change.",
        remark="The order shares the basket's dict; I give it a copy.",
    ),
)


def repair(talk: Conversation) -> Iterator[Answer]:
    """Answer the planner's request, or the step agent's."""
    if search("^You plan repairs", talk.system):
        yield from _plan(talk.human)
    elif search("^You carry out one step", talk.system) and (file := search(r"^File: (\S+)", talk.human)):
        yield from _carry_out(file[1], talk)


def _plan(request: str) -> Iterator[Answer]:
    """Return a plan from the message that holds the files and the output of the tests."""
    failed = search(r"^=* ?(\d+) failed", request)
    steps = [step for mistake in MISTAKES if (step := _step(mistake, request))]
    if failed and steps:
        yield Answer.call(
            "Plan",
            f"{failed[1]} of the tests fail. I compare what they expect with the files I was shown.",
            summary=f"{failed[1]} of the tests fail. Each step corrects one cause in the code; the tests "
            "stay as they are.",
            steps=steps,
        )
    yield Answer(
        "I see no defect here that I know how to repair. I am a scripted model; what I know is in "
        "agent/scripted/repair.py."
    )


def _step(mistake: Mistake, request: str) -> dict[str, str] | None:
    test = search(rf"^FAILED (tests/test_{mistake.module}\.py::\w+)", request)
    head = rf'(?s)^<file path="([^"\n]*{mistake.module}\.py)"[^>]*>\n'
    file = search(rf"{head}(?:(?!^</file>).)*?{re.escape(mistake.wrong)}", request)
    if not test or not file:
        return None
    return {"file": file[1], "change": mistake.change, "reason": f"{test[1]} fails: {mistake.reason}"}


def _carry_out(file: str, talk: Conversation) -> Iterator[Answer]:
    """Read the file, write it corrected, run the tests of that module, report."""
    match talk.newest:
        case name if name == HUMAN:
            yield Answer.call("read_file", f"I read {file} before I change it.", path=file)
        case "read_file":
            yield _corrected(file, talk.result)
        case "write_file" if talk.result.startswith("Wrote "):
            yield from _test(file, talk.human)
        case "write_file":
            yield Answer(f"I could not write {file}; it is as it was. What I got:\n\n{talk.result}")
        case "run_command":
            yield _report(file, talk)


def _corrected(file: str, result: str) -> Answer:
    whole = re.match(r'<file path="[^"\n]*" lines="1-(\d+) of \1">\n(.*)</file>\s*\Z', result, re.DOTALL)
    if not whole or search(r"^… \d+ bytes left out …$", result):
        return Answer(f"I could not read the whole of {file}, so I changed nothing. What I got:\n\n{result}")
    for mistake in MISTAKES:
        if whole[2].count(mistake.wrong) == 1:
            corrected = whole[2].replace(mistake.wrong, mistake.right)
            return Answer.call("write_file", mistake.remark, path=file, content=corrected)
    return Answer(f"I read {file} and found nothing in it that I know how to correct. I changed nothing.")


def _test(file: str, request: str) -> Iterator[Answer]:
    module, command = search(r"(\w+)\.py$", file), search(r"^Test command: (.+)$", request)
    if module and command and search(r"\bpytest\b", command[1]):
        one = f"{command[1]} tests/test_{module[1]}.py"
        yield Answer.call("run_command", "I run the tests of this module.", command=one)
    elif command:
        yield Answer.call("run_command", "I run the tests.", command=command[1])


def _report(file: str, talk: Conversation) -> Answer:
    change, result = search("^Change: (.+)$", talk.human), talk.result
    if change and search("^exit_code: 0$", result):
        passed = search(r"^=* ?(\d+ passed)", result)
        seen = (
            f"The tests I ran pass now ({passed[1]})."
            if passed
            else "The test command ended with exit code 0."
        )
        return Answer(f"Changed {file}: {change[1]} {seen}")
    failed = search(r"^=* ?(\d+ failed[^\n]*?)(?: in [\d.]+s.*)?$", result)
    if failed and search("^exit_code: [1-9]", result):
        return Answer(f"I changed {file} as planned, but tests I ran still fail: {failed[1]}.")
    return Answer(
        f"I changed {file} as planned, but the tests did not run to a result. What I got:\n\n{result}"
    )
