"""What a run of the tests showed."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from agent.repair.junit import tally
from agent.sandbox.output import joined
from agent.sandbox.provider import CommandResult
from agent.tools.budget import clipped

MAX_OUTPUT_BYTES = 12_000
MAX_NAMES = 200
MAX_NAME_CHARS = 300

_FAILED = re.compile(r"(?:FAILED|ERROR) (\S+?(?:\[[^\n]*?\])?)(?: - .*)?")
_MAX_LINE_CHARS = 1_000
"""Of a line that names a test: the time to read one grows with the square of it, and more is not kept."""
_COUNT = re.compile(r"\b([0-9]{1,9}) (passed|failed|errors?|skipped)\b")
_OUR_REPORT = re.compile(r"^-+ generated xml file: .*/\.repair/junit\.xml -+\n", re.M)


@dataclass(frozen=True, slots=True)
class TestReport:
    """The outcome of the test command; the command's exit code alone decides whether the tests pass."""

    __test__ = False  # pytest would take the name for a test class

    exit_code: int | None
    """None where the command timed out or its end was not seen: not green."""
    timed_out: bool
    passed: int | None
    """Counts and names are pytest's; None and empty where another runner says nothing that can be counted."""
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

    def told(self) -> str:
        """Return the outcome in a few words."""
        if self.reason:
            return self.reason
        if self.passed is None or self.failed is None:
            return "passed" if self.green else f"failed with exit code {self.exit_code}"
        return f"{self.failed} failed, {self.passed} passed" if self.failed else f"{self.passed} passed"

    def as_state(self) -> dict[str, Any]:
        """Return the report as plain data for state."""
        return asdict(self) | {"failing": list(self.failing)}

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
        counts = (found.passed, found.failed, found.skipped) if found else _counted(output)
        failing = found.failing if found else _named(output)
        return cls(
            exit_code=result.exit_code,
            timed_out=result.timed_out,
            passed=counts[0],
            failed=counts[1],
            failing=tuple(_text(name)[:MAX_NAME_CHARS] for name in failing[:MAX_NAMES]),
            output=clipped(printed.mapped(_text), MAX_OUTPUT_BYTES),
            skipped=counts[2],
            reason=_reason(result),
        )


def _named(output: str) -> tuple[str, ...]:
    # Each line without the reason, which may be as long as it likes.
    lines = (line[:_MAX_LINE_CHARS] for line in output.split("\n") if line.startswith(("FAILED ", "ERROR ")))
    return tuple(dict.fromkeys(found[1] for line in lines if (found := _FAILED.fullmatch(line))))


def _counted(output: str) -> tuple[int | None, int | None, int | None]:
    # The last line that counts is the closing one; a test's own output may look like it too.
    for line in reversed(output.splitlines()):
        found = _COUNT.findall(line)
        if found and (" in " in line or line.startswith("=")):
            counts = {word.rstrip("s") if word.startswith("error") else word: int(n) for n, word in found}
            failed = counts.get("failed", 0) + counts.get("error", 0)
            return counts.get("passed", 0), failed, counts.get("skipped", 0)
    return None, None, None


def _reason(result: CommandResult) -> str:
    if result.timed_out:
        return f"the tests did not end within their limit and were stopped after {result.duration_s:.0f} s"
    if result.exit_code is None:
        return "the end of the tests was not seen: their outcome is unknown"
    return ""


def _text(text: str) -> str:
    """Return text that a checkpoint can hold: no halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()
