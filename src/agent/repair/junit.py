"""What pytest writes about a run of the tests as JUnit XML: exact counts, and names that output would cut."""

import posixpath
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

MAX_BYTES = 10_000_000
MAX_ELEMENTS = 500_000
MAX_TAG_BYTES = 65_536
MAX_FAILING = 2_000
"""Tests that are named; all are counted."""
_MAX_NAME_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of a run, and which tests failed."""

    passed: int
    failed: int
    skipped: int
    failing: tuple[str, ...]


def tally(data: bytes) -> Tally | None:
    """Read a report; None where it is none. Takes a second for a large one.

    It was written in the sandbox by whatever ran there: one with declarations, which can make a small
    document a large one, is not read, nor one that would be large in memory. No tree is made of it.
    """
    if len(data) > MAX_BYTES or b"<!" in data.replace(b"<![CDATA[", b"") or not _within_measure(data):
        return None
    cases = _Cases()
    try:
        parser = ElementTree.XMLParser(target=cases)
        parser.feed(data)
        parser.close()
    # Not ParseError alone: an encoding that is not known is a LookupError, another a ValueError.
    except (ElementTree.ParseError, LookupError, ValueError):
        return None
    counts = cases.counts
    return Tally(counts["passed"], len(cases.failing), counts["skipped"], tuple(cases.failing)[:MAX_FAILING])


def _within_measure(data: bytes) -> bool:
    """Whether a parser can read it in little memory: it holds a tag with all its attributes at once."""
    if data.count(b"<") > MAX_ELEMENTS:
        return False
    end = 0
    while (start := data.find(b"<", end)) >= 0:
        end = data.find(b">", start)
        if end < 0 or end - start > MAX_TAG_BYTES:
            return False
    return True


class _Cases:
    """What a parser calls: keeps counts, and the names of tests that failed."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.failing: dict[str, None] = {}
        """A test that fails and whose teardown fails too is listed once for each."""
        self._depth = 0
        self._case: tuple[int, str] | None = None
        self._outcome = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Take in the start of an element."""
        self._depth += 1
        if tag == "testcase" and self._case is None:
            self._case, self._outcome = (self._depth, _name(attributes)), "passed"
        elif self._case and self._depth == self._case[0] + 1 and self._outcome != "failed":
            if tag in {"failure", "error"}:
                self._outcome = "failed"
            elif tag == "skipped" and attributes.get("type") != "pytest.xfail":  # that one has run
                self._outcome = "skipped"

    def end(self, tag: str) -> None:
        """Take in the end of an element."""
        if self._case and self._depth == self._case[0]:
            self.counts[self._outcome] += 1
            if self._outcome == "failed":
                self.failing[self._case[1]] = None
            self._case = None
        self._depth -= 1

    def close(self) -> None:
        """Take in the end."""


def _name(case: Mapping[str, str]) -> str:
    """Return the name pytest takes on its command line, `tests/test_a.py::TestB::test_c[1]`."""
    file, inside, name = (case.get(key, "")[:_MAX_NAME_CHARS] for key in ("file", "classname", "name"))
    if not file:
        return name if not inside else f"{inside}.{name}"
    module = posixpath.splitext(file)[0].replace("/", ".")
    classes = inside.removeprefix(module).strip(".").replace(".", "::")
    return "::".join(filter(None, [file, classes, name]))
