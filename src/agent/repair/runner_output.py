"""What test runners print at their end: how many tests ran, and how they ended."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

MAX_LINE_CHARS = 1_000
"""Read of a line: the time to search one may grow with the square of it."""
_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_FAILED = re.compile(r"(?:FAILED|ERROR) (\S+?(?:\[[^\n]*?\])?)(?: - .*)?")
_UNITTEST_ENDED = re.compile(r"(?:OK|FAILED|NO TESTS RAN)(?: \(([^()]*)\))?")
_UNITTEST_FAILED = re.compile(r"(?:FAIL|ERROR): (\w+ \([\w.]+\))")

Groups = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tests ended how."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def ran(self) -> int:
        """How many were not skipped."""
        return self.passed + self.failed

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)


def counts(output: str) -> Counts | None:
    """Return what the runner counted; None where nothing that is known was printed.

    A command may start several: the last that ran a test is taken, or, where none did, the last.
    """
    found = list(_summaries(output))
    return next((counts for counts in reversed(found) if counts.ran), found[-1] if found else None)


def names_of_failing(output: str) -> tuple[str, ...]:
    """Return the tests that pytest or unittest names as failed."""
    # Each line without the reason, which may be as long as it likes.
    lines = [line[:MAX_LINE_CHARS] for line in output.split("\n")]
    found = [match for line in lines if (match := _FAILED.fullmatch(line))]
    found = found or [match for line in lines if (match := _UNITTEST_FAILED.match(line))]
    return tuple(dict.fromkeys(match[1] for match in found))


def _summaries(output: str) -> Iterator[Counts]:
    """Return each summary, in order; what a runner tells in several lines is one, and comes last."""
    sums: dict[str, Counts] = {}
    ran: int | None = None  # tests that unittest counted; how they ended is in a later line
    for line in output.split("\n"):
        line = _COLOURS.sub("", line[:MAX_LINE_CHARS]).rstrip("\r")
        if found := re.match(r"Ran (\d{1,9}) tests? in ", line):
            ran = int(found[1])
        elif ran is not None and (found := _UNITTEST_ENDED.fullmatch(line)):
            yield _unittest(ran, found[1] or "")
            ran = None
        for pattern, read in _IN_ONE_LINE:
            if found := re.search(pattern, line):
                yield read(found.groupdict())
                break
        for name, pattern in _IN_SEVERAL_LINES.items():
            if found := re.match(pattern, line):
                sums[name] = sums.get(name, Counts()) + _named(found.groupdict())
    yield from _tap(output)
    if re.search(r"^=== RUN +\w", output, re.M):  # go test -v
        yield Counts(*(len(re.findall(rf"^--- {word}: ", output, re.M)) for word in ("PASS", "FAIL", "SKIP")))
    yield from sums.values()
    if _GO_WITHOUT_TESTS.search(output) and not _GO.search(output):
        yield Counts()


def _tap(output: str) -> Iterator[Counts]:
    """Read the results of a TAP stream with a plan: `1..2`, `ok 1 - a`, `not ok 2 # TODO`."""
    if not re.search(r"^1\.\.[1-9]\d{0,8}\b", output, re.M):
        return
    ended = Counts()
    for line in output.split("\n"):
        if found := re.match(r"(not )?ok\b[^#]*(?:# *(skip|todo)\b)?", line[:MAX_LINE_CHARS], re.I):
            aside = bool(found[2])
            ended += Counts(not found[1] and not aside, bool(found[1]) and not aside, aside)
    yield ended


def _unittest(ran: int, told: str) -> Counts:
    ended = {name: int(count) for name, count in re.findall(r"([a-z ]+)=(\d{1,9})", told)}
    ended = {name.strip(): count for name, count in ended.items()}
    failed = sum(ended.get(name, 0) for name in ("failures", "errors", "unexpected successes"))
    skipped = ended.get("skipped", 0)
    return Counts(max(0, ran - failed - skipped), failed, skipped)


def _words(groups: Groups) -> Counts:
    """Read `2 passed, 1 failed`, in any order."""
    told = re.findall(r"(\d{1,9}) (x?passed|x?failed|errors?|skipped|todo)\b", groups["told"] or "")
    ended: dict[str, int] = {}
    for count, word in told:
        ended[word] = ended.get(word, 0) + int(count)
    failed = sum(ended.get(word, 0) for word in ("failed", "error", "errors"))
    # Those that were expected to fail have run, as unittest counts them.
    passed = sum(ended.get(word, 0) for word in ("passed", "xpassed", "xfailed"))
    return Counts(passed, failed, ended.get("skipped", 0) + ended.get("todo", 0))


def _named(groups: Groups) -> Counts:
    """Read counts by the names of groups: `total` without `passed` leaves that to be computed."""
    number = {name: int(count or 0) for name, count in groups.items()}
    failed = number.get("failed", 0) + number.get("errors", 0)
    skipped = number.get("skipped", 0)
    passed = number.get("passed", number.get("total", 0) - failed - skipped)
    return Counts(max(0, passed), failed, skipped)


def _none(_: Groups) -> Counts:
    return Counts()


_N = r"\d{1,9}"
_IN_ONE_LINE: tuple[tuple[str, Callable[[Groups], Counts]], ...] = (
    # pytest: `= 1 failed, 2 passed in 0.12s =`, `2 passed in 0.1s`, `3 deselected in 0.1s`
    (
        rf"^(?:=+ )?(?=.*\b(?:x?passed|x?failed|errors?|skipped|deselected)\b)"
        rf"(?P<told>{_N} [a-z ]+(?:, {_N} [a-z ]+)*) in [\d.]+ ?s\b",
        _words,
    ),
    (r"^(?:=+ )?no tests (?:ran|collected)\b.* in [\d.]+ ?s", _none),
    (rf"^(?:=+ )?{_N}(?:/{_N})? tests? collected\b", _none),
    # jest and vitest
    (rf"^\s*Tests:?\s+(?P<told>.*\b{_N} (?:passed|failed|skipped|todo)\b.*)", _words),
    (r"^\s*Tests:?\s+(?:no tests|0 total)", _none),
    (r"^No tests? (?:files? )?found, exiting with code 0", _none),
    # Deno, doctest -v
    (rf"^(?:ok|FAILED) \| (?P<passed>{_N}) passed\b.* \| (?P<failed>{_N}) failed\b", _named),
    (rf"^(?P<passed>{_N}) passed and (?P<failed>{_N}) failed\.$", _named),
    # TAP, prove
    (r"^1\.\.0\b", _none),
    (rf"^Files={_N}, Tests=0\b", _none),
    # Gradle, Maven
    (r"^> Task :(?:\S+:)?test NO-SOURCE", _none),
    (r"^\[INFO\] No tests to run\.", _none),
    (
        rf"Tests run: (?P<total>{_N}), Failures: (?P<failed>{_N}), Errors: (?P<errors>{_N}), "
        rf"Skipped: (?P<skipped>{_N})",
        _named,
    ),
    # RSpec, minitest, ExUnit
    (rf"^(?P<total>{_N}) examples?, (?P<failed>{_N}) failures?(?:, (?P<skipped>{_N}) pending)?", _named),
    (
        rf"^(?P<total>{_N}) (?:runs|tests), {_N} assertions, (?P<failed>{_N}) failures, "
        rf"(?P<errors>{_N}) errors(?:, (?P<skipped>{_N}) skips)?",
        _named,
    ),
    (rf"^(?P<total>{_N}) tests?, (?P<failed>{_N}) failures?$", _named),
    # PHPUnit
    (rf"^OK \((?P<total>{_N}) tests?, ", _named),
    (
        rf"^Tests: (?P<total>{_N}), Assertions: {_N}(?:, Errors: (?P<errors>{_N}))?"
        rf"(?:, Failures: (?P<failed>{_N}))?",
        _named,
    ),
    (r"^No tests executed!", _none),
    # ctest
    (rf"^{_N}% tests passed, (?P<failed>{_N}) tests? failed out of (?P<total>{_N})", _named),
    (r"^No tests were found!!!", _none),
)
_IN_SEVERAL_LINES = {
    "cargo": (
        rf"test result: \w+\. (?P<passed>{_N}) passed; (?P<failed>{_N}) failed; "
        rf"(?P<skipped>{_N}) ignored"
    ),
    "dotnet": rf".*Failed: +(?P<failed>{_N}), Passed: +(?P<passed>{_N}), Skipped: +(?P<skipped>{_N}), Total:",
    "bun": rf" (?:(?P<passed>{_N}) pass|(?P<failed>{_N}) fail|(?P<skipped>{_N}) skip)$",
    "node": rf"(?:#|ℹ) (?:pass (?P<passed>{_N})|fail (?P<failed>{_N})|skipped (?P<skipped>{_N}))$",
    "mocha": rf"\s+(?:(?P<passed>{_N}) passing \(|(?P<failed>{_N}) failing$|(?P<skipped>{_N}) pending$)",
}
GO_FAILED = re.compile(r"^(?:--- FAIL: |FAIL\t)", re.MULTILINE)
"""What go says of failing tests, also where it counts none."""
# Go counts nothing without -v, but says where there was nothing to run.
_GO = re.compile(r"^(?:ok|FAIL|--- FAIL)\b(?!.*\[no tests to run\])", re.MULTILINE)
_GO_WITHOUT_TESTS = re.compile(r"^(?:\?|ok)\s.*\[no test(?: files|s to run)\]", re.MULTILINE)
