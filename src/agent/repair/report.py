"""What a run of the tests showed."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from agent.repair.junit import tally
from agent.repair.runner_output import GO_FAILED, Counts, counts, names_of_failing
from agent.sandbox.output import joined
from agent.sandbox.provider import CommandResult
from agent.tools.budget import clipped

MAX_OUTPUT_BYTES = 12_000
MAX_NAMES = 200
MAX_NAME_CHARS = 300
NO_TESTS = 5
"""The exit code of pytest, and of unittest from Python 3.12 on, where there is no test."""

_MEANING = {
    126: " (a program could not be run)",
    127: " (a program was not found)",
    137: " (killed, perhaps for want of memory)",
}
"""Of exit codes that a shell gives for what it started."""
_OUR_REPORT = re.compile(r"^-+ generated xml file: .*/\.repair/junit\.xml -+\n", re.M)


@dataclass(frozen=True, slots=True)
class TestReport:
    """The outcome of the test command.

    Its exit code decides whether the tests pass; but 0 does not where it is known that no test ran, or that
    one failed.
    """

    __test__ = False  # pytest would take the name for a test class

    exit_code: int | None
    """None where the command timed out or its end was not seen: not green."""
    timed_out: bool
    passed: int | None
    """Counts and names are the runner's; None and empty where it printed nothing that can be counted."""
    failed: int | None
    failing: tuple[str, ...]
    output: str
    skipped: int | None = None
    reason: str = ""
    """Why the run is red, where the exit code does not say it."""

    @property
    def green(self) -> bool:
        """Whether the tests pass."""
        return self.exit_code == 0 and not self.reason

    @property
    def nothing_ran(self) -> bool:
        """Whether it is known that no test ran, or each was skipped."""
        return self.passed == 0 and self.failed == 0

    @property
    def nothing_to_run(self) -> bool:
        """Whether the command ended, in order, without a test: there is nothing to mend by that."""
        return self.nothing_ran and self.exit_code in {0, NO_TESTS}

    def told(self) -> str:
        """Return the outcome in a few words."""
        if self.reason:
            return self.reason
        if not self.green and not self.failed and self.passed is not None:
            told = "no test ran" if self.nothing_ran else f"{self.passed} passed"
            return f"{told}, but the test command ended with exit code {self.exit_code}"
        if self.passed is None or self.failed is None:
            if self.green:
                return f"passed with exit code {self.exit_code}, not counted"
            return f"failed with exit code {self.exit_code}{_MEANING.get(self.exit_code or 0, '')}"
        return f"{self.failed} failed, {self.passed} passed" if self.failed else f"{self.passed} passed"

    def as_state(self) -> dict[str, Any]:
        """Return the report as plain data for state."""
        return asdict(self) | {"failing": list(self.failing), "green": self.green}

    @classmethod
    def from_state(cls, data: Mapping[str, Any]) -> Self:
        """Return the report that `as_state` wrote; what it does not know is passed over."""
        known = {field.name for field in fields(cls)}
        given: dict[str, Any] = {name: value for name, value in data.items() if name in known}
        return cls(**given | {"failing": tuple(data["failing"])})

    @classmethod
    def of(cls, result: CommandResult, junit: bytes = b"") -> Self:
        """Read a report from what the test command did.

        Args:
            result: how it ended.
            junit: the JUnit XML it left, if any.
        """
        printed = joined([result.stdout, result.stderr]).mapped(lambda text: _OUR_REPORT.sub("", text))
        output = str(printed)
        found = tally(junit) if junit else None
        counted = Counts(found.passed, found.failed, found.skipped) if found else None
        if counted is None or not counted.ran:
            counted = counts(output) or counted
        failing = found.failing if found and found.failing else names_of_failing(output)
        return cls(
            exit_code=result.exit_code,
            timed_out=result.timed_out,
            passed=counted.passed if counted else None,
            failed=counted.failed if counted else None,
            failing=tuple(_text(name)[:MAX_NAME_CHARS] for name in failing[:MAX_NAMES]),
            output=clipped(printed.mapped(_text), MAX_OUTPUT_BYTES),
            skipped=counted.skipped if counted else None,
            reason=_reason(result, counted, output),
        )


def _reason(result: CommandResult, counted: Counts | None, output: str) -> str:
    if result.timed_out:
        return f"the tests did not end within their limit and were stopped after {result.duration_s:.0f} s"
    if result.exit_code is None:
        return "the end of the tests was not seen: their outcome is unknown"
    if result.exit_code == 0 and counted is None and GO_FAILED.search(output):
        return "tests failed, although the test command ended with exit code 0"
    if result.exit_code != 0 or counted is None:
        return ""
    if counted.failed:
        return f"{_tests(counted.failed)} failed, although the test command ended with exit code 0"
    if not counted.passed:
        skipped = f" ({_tests(counted.skipped)} skipped)" if counted.skipped else ""
        return f"no test ran{skipped}, although the test command ended with exit code 0"
    return ""


def _tests(count: int) -> str:
    return f"{count} test{'s' if count != 1 else ''}"


def _text(text: str) -> str:
    """Return text that a checkpoint can hold: no halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()
