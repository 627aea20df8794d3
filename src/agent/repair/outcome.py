"""What a repair came to: what is odd about it, whether it gets anywhere, and how it is told."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.repair.limits import MAX_REJECTIONS
from agent.repair.report import TestReport
from agent.repair.tree import matches

State = Mapping[str, Any]
MAX_SHOWN = 20

_ENDINGS = {
    "passed": "The tests pass.",
    "already_green": "The tests pass already; there was nothing to repair.",
    "nothing_tested": "No test ran; nothing was repaired. Check the test command and where it looks.",
    "no_progress": "Stopped: with the same changes as in an earlier try, the same tests failed again.",
    "setup_failed": "The set-up command failed.",
}


def failures(report: TestReport) -> str:
    """Return what stands for the way a run of the tests failed; `green` where it did not.

    Where the failing tests have no names it is the output, without the numbers: they tell times.
    """
    if report.green:
        return "green"
    told = list(report.failing) or [re.sub(r"\d+", "", report.output)]
    text = repr((sorted(told), report.exit_code, report.timed_out))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def oddities(state: State, report: TestReport, digest: str) -> list[str]:
    """Return what a reader should know of a run of the tests beside its outcome.

    Args:
        state: with what is known of earlier runs.
        report: what this run showed.
        digest: stands for the files it ran on.
    """
    before = TestReport.from_state(state["tests_before"])
    found = []
    now, earlier = failures(report), state["outcomes"].get(digest)
    # What was left out of the patch was not there.
    if report.green and not state["changes"]:
        found.append("Flaky: the tests failed at first and pass now, and no file of the project was changed.")
    elif earlier not in {None, now}:
        found.append("Flaky: the tests ended otherwise than before on the very same files.")
    if before.passed is not None and before.failed is not None:
        was = before.passed + before.failed + (before.skipped or 0)
        if report.passed is None:
            found.append("No tests could be counted any more; before the repair they could.")
        elif (ran := report.passed + (report.failed or 0) + (report.skipped or 0)) < was:
            found.append(f"Fewer tests ran than before the repair: {ran} instead of {was}.")
        elif (report.skipped or 0) > (before.skipped or 0):
            found.append(f"More tests were skipped than before the repair: {report.skipped}.")
    return found


def missing(state: State, names: Sequence[str]) -> str:
    """Warn of a red run that lacked what the steps left beside the patch."""
    return (
        f"Try {state['iteration']}: the tests failed in a sandbox with the patch alone. "
        f"What the steps left besides was not in it: {_listed(names)}."
    )


def unless_touched(report: TestReport, touched: Sequence[str], protect: Sequence[str]) -> TestReport:
    """Return the report; red if protected files were changed while the tests ran.

    Args:
        touched: the original files that are not as they were.
    """
    wrong = [path for path in touched if matches(path, protect)]
    if not report.green or not wrong:
        return report
    return replace(
        report, reason=f"{_listed(wrong)} changed while the tests ran, though covered by `protect`"
    )


def summary(state: State) -> str:
    """Tell how the run ended, for a human."""
    lines = [_ending(state)]
    if state.get("summary"):
        lines.append(state["summary"])
    if state.get("tests_before"):
        lines.append(f"Tests before: {TestReport.from_state(state['tests_before']).told()}.")
    after = state.get("tests_after")
    if after and state.get("status") != "already_green":
        report = TestReport.from_state(after)
        lines.append(f"Tests after: {report.told()}.")
        if report.failing:
            lines.append("Still failing: " + _listed(report.failing))
    if state["done"] and after is None:
        lines.append("What was changed was not verified.")
    if state["changed_tests"]:
        lines.append("Changes to these tests were undone: " + _listed(state["changed_tests"]))
    if state["outside"]:
        lines.append("Written outside the project, and no part of the patch: " + _listed(state["outside"]))
    if state["left_out"]:
        told = [f"{path} ({why})" for path, why in state["left_out"].items()]
        lines.append("Changed, but not in the patch: " + _listed(told))
    if not_counted := _not_counted(state):
        lines.append(not_counted)
    return "\n".join([*lines, *state["warnings"]])


def _not_counted(state: State) -> str:
    """Warn of tests that pass, where nothing but the exit code says so."""
    report = TestReport.from_state(state["tests_after"]) if state.get("tests_after") else None
    if report is None or not report.green or report.passed is not None:
        return ""
    return "How many tests ran could not be read from the output: that they pass is what the exit code says."


def _ending(state: State) -> str:
    status, limits = state.get("status") or "failed", state["limits"]
    if status == "failed" and after_tries(state):
        return f"The tests still fail after {limits['tries']} tries."
    if status == "failed":
        return "The tests still fail."
    if status == "budget":
        time_out = state["spent_s"] >= limits["time_s"]
        used = f"{limits['time_s']} s of working time" if time_out else f"{limits['steps']} steps"
        return f"Stopped: the limit of {used} is used up."
    if status == "rejected":
        return _rejected(state)
    return _ENDINGS.get(status, status)


def after_tries(state: State) -> bool:
    """Whether all tries are used up."""
    return bool(state["tests_after"]) and state["iteration"] >= state["limits"]["tries"]


def _rejected(state: State) -> str:
    ending = "The changes of earlier tries are in the diff." if state["changes"] else "Nothing was changed."
    times = state["rejections"]
    first = f"{times} plans were rejected." if times >= MAX_REJECTIONS else "The plan was rejected."
    words = state["decisions"][-1].get("message") if state["decisions"] else ""
    return f"{first} {ending}" + (f"\nThe human said: {words}" if words else "")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    return ", ".join(names[:MAX_SHOWN]) + more
