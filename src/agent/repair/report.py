"""What a run of the tests showed."""

import re
from dataclasses import asdict, dataclass
from typing import Any, Self

from agent.sandbox.provider import CommandResult
from agent.tools.results import clipped

MAX_OUTPUT_BYTES = 12_000
MAX_NAMES = 200

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?(?:\[[^\n]*?\])?)(?: - .*)?$", re.M)
_COUNT = re.compile(r"\b(\d+) (passed|failed|errors?)\b")


@dataclass(frozen=True, slots=True)
class TestReport:
    """The outcome of the test command; the command's exit code alone decides whether the tests pass."""

    __test__ = False  # pytest would take the name for a test class

    exit_code: int | None
    """None where the command timed out or its end was not seen: not green."""
    timed_out: bool
    passed: int | None
    """Counts and names are read from pytest's output; None and empty where there is none."""
    failed: int | None
    failing: tuple[str, ...]
    output: str

    @property
    def green(self) -> bool:
        """Whether the tests pass."""
        return self.exit_code == 0

    def as_state(self) -> dict[str, Any]:
        """Return the report as plain data for state."""
        return asdict(self) | {"failing": list(self.failing)}

    @classmethod
    def from_state(cls, data: dict[str, Any]) -> Self:
        """Return the report that `as_state` wrote."""
        return cls(**{**data, "failing": tuple(data["failing"])})

    @classmethod
    def of(cls, result: CommandResult) -> Self:
        """Read a report from what the test command did."""
        output = result.stdout + result.stderr
        counts: dict[str, int] = {}
        # The last line that counts is the closing one; a test's own output may look like it too.
        for line in reversed(output.splitlines()):
            found = _COUNT.findall(line)
            if found and (" in " in line or line.startswith("=")):
                counts = {word.rstrip("s") if word.startswith("error") else word: int(n) for n, word in found}
                break
        failed = counts.get("failed", 0) + counts.get("error", 0)
        return cls(
            exit_code=result.exit_code,
            timed_out=result.timed_out,
            passed=counts.get("passed", 0) if counts else None,
            failed=failed if counts else None,
            failing=tuple(dict.fromkeys(_FAILED.findall(output)))[:MAX_NAMES],
            output=clipped(output, MAX_OUTPUT_BYTES),
        )
