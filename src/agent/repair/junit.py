"""What pytest writes about a run of the tests as JUnit XML: exact counts, and names that output would cut."""

import posixpath
from dataclasses import dataclass
from xml.etree import ElementTree

MAX_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of a run, and which tests failed."""

    passed: int
    failed: int
    skipped: int
    failing: tuple[str, ...]


def tally(data: bytes) -> Tally | None:
    """Read a report; None where it is none.

    It was written in the sandbox by whatever ran there: one with declarations, which can make a small
    document a large one, is not read.
    """
    if len(data) > MAX_BYTES or b"<!" in data.replace(b"<![CDATA[", b""):
        return None
    try:
        cases = list(ElementTree.fromstring(data).iter("testcase"))
    except ElementTree.ParseError:
        return None
    outcomes = [_outcome(case) for case in cases]
    bad = [_name(case) for case, outcome in zip(cases, outcomes, strict=True) if outcome == "failed"]
    # A test that fails and whose teardown fails too is listed once for each.
    failing = tuple(dict.fromkeys(bad))
    return Tally(outcomes.count("passed"), len(failing), outcomes.count("skipped"), failing)


def _outcome(case: ElementTree.Element) -> str:
    tags = {child.tag for child in case}
    if tags & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in tags else "passed"


def _name(case: ElementTree.Element) -> str:
    """Return the name pytest takes on its command line, `tests/test_a.py::TestB::test_c[1]`."""
    file, inside, name = case.get("file", ""), case.get("classname", ""), case.get("name", "")
    if not file:
        return name if not inside else f"{inside}.{name}"
    module = posixpath.splitext(file)[0].replace("/", ".")
    classes = inside.removeprefix(module).strip(".").replace(".", "::")
    return "::".join(filter(None, [file, classes, name]))
