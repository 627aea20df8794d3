"""What a sandbox left for the repair to read, listings and reports, where anything may have written it."""

import tracemalloc

import pytest

from agent.errors import InputError, SandboxAnswerError
from agent.repair import junit
from agent.repair.diff import unified_diff
from agent.repair.junit import tally
from agent.repair.report import TestReport
from agent.repair.request import checked
from agent.repair.tree import MAX_LISTED, matches, parsed
from agent.sandbox.provider import CommandResult

MAX_GROWN_BYTES = 64_000_000
CASE = b'<testcase classname="tests.a" name="b" file="tests/a.py"/>'


@pytest.mark.parametrize(
    "fields",
    [
        b"\0f 644 " + b"9" * 5000 + b"\0./a\0\0",
        b"\0f 644 -5\0./a\0\0",
        b"\0f 99999999999 5\0./a\0\0",
        b"\0x 644 5\0./a\0\0",
        b"\0f 644\0./a\0\0",
        b"\0f 644 5\0./../a\0\0",
        b"\0f 644 5\0/etc/passwd\0\0",
        b"\0f 644 5\0\0\0",
        b"\0\xff\xfe 644 5\0./a\0\0",
    ],
)
def test_listing_that_is_none_is_one_error(fields: bytes) -> None:
    """Missing fields, numbers of 5,000 digits, names that lead out of the project."""
    try:
        found = parsed(fields)
    except SandboxAnswerError:
        return
    assert found == {}


def test_listing_with_forged_digests_reads_as_files_that_could_not_be_read() -> None:
    """A digest that is none is as one that is missing."""
    assert parsed(b"\xff" * 64 + b"  ./a\0" + b"\0f 644 5\0./a\0\0")["a"].sha256 == ""


def test_listing_of_more_files_than_a_project_has_is_refused_unread() -> None:
    """Counted before a single one is looked at."""
    listing = b"\0" * 15_000_000
    tracemalloc.start()
    with pytest.raises(SandboxAnswerError, match=f"more than {MAX_LISTED} files"):
        parsed(listing)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_matches_is_not_slowed_by_many_stars() -> None:
    """The ways to share 400 folders out among 20 `**` are more than anything can try."""
    path = "/".join(["a"] * 400)
    assert not matches(path, ["**/" * 20 + "x"])
    assert matches(path, ["**/a/" * 20 + "**"])
    assert matches("a/b/c/d", ["a/**/**/d"])
    assert not matches("a/d", ["a/**/c/**/d"])


@pytest.mark.parametrize(
    "document",
    [
        b"<a>" * 200_000,
        b"<testsuite>" + b"<testcase/>" * 600_000,
        b"<testsuite " + b" ".join(b'a%d=""' % number for number in range(100_000)) + b"/>",
        b'<?xml version="1.0" encoding="no-such-thing"?><testsuite/>',
        b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        b'<?xml version="1.0" encoding="utf-16"?>' + "<!DOCTYPE a><a/>".encode("utf-16"),
        b"<testsuite>" + CASE,
        b"",
        b"x" * junit.MAX_BYTES,
        b"x" * (junit.MAX_BYTES + 1),
    ],
    ids=range(10),
)
def test_junit_that_would_be_large_is_not_read(document: bytes) -> None:
    """Deep, of many elements or attributes, with entities, cut, or no XML: as if there were none."""
    tracemalloc.start()
    assert tally(document) is None
    assert tracemalloc.get_traced_memory()[1] < MAX_GROWN_BYTES
    tracemalloc.stop()


def test_junit_of_many_tests_is_read_in_little_memory() -> None:
    """No tree is made of it; all are counted, of the failing ones a number are named."""
    failed = b"".join(
        b'<testcase classname="tests.a" name="b%d" file="tests/a.py"><failure/><error/></testcase>' % number
        for number in range(10_000)
    )
    tracemalloc.start()
    found = tally(b"<testsuites><testsuite>" + CASE * 100_000 + failed + b"</testsuite></testsuites>")
    assert tracemalloc.get_traced_memory()[1] < MAX_GROWN_BYTES
    tracemalloc.stop()
    assert found is not None
    assert (found.passed, found.failed, len(found.failing)) == (100_000, 10_000, junit.MAX_FAILING)
    assert found.failing[0] == "tests/a.py::b0"


def test_diff_of_files_that_have_little_in_common_is_made_of_the_whole() -> None:
    """Comparing 20,000 lines with as many others would take hours; the patch fits nevertheless."""
    old = "".join(f"{number % 150}\n" for number in range(10_000))
    new = "".join(f"{(number * 7919) % 151}\n" for number in range(10_000))
    made = unified_diff({"a": old}, {"a": new})
    assert "@@ -1,10000 +1,10000 @@" in made
    lines = [f"{number}\n" for number in range(10_000)]
    changed = [*lines[:5_000], "changed\n", *lines[5_001:]]
    small = unified_diff({"a": "".join(lines)}, {"a": "".join(changed)})
    assert "-5000\n+changed\n" in small
    assert small.count("\n") < 15


def test_report_of_output_made_to_be_slow_or_odd_to_read_stands() -> None:
    """Counts of 5,000 digits, and a name of brackets without end: no error, and no hours."""
    printed = "FAILED " + "a[" * 100_000 + "\n" + "9" * 5_000 + " passed in 1s\nFAILED tests/a.py::b - why\n"
    report = TestReport.of(CommandResult(1, printed, ""))
    assert (report.passed, report.failed, report.failing[1:]) == (None, None, ("tests/a.py::b",))
    assert len(report.failing[0]) <= 300


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"project": {f"f{number}": "" for number in range(1_000_000)}}, "has 1000000 files"),
        ({"project": {f"{'n' * 200}/{number}": "" for number in range(9_000)}}, "has 9000 files"),
        ({"project": {"x" * 2_000_000: 1}}, "has 1 files"),
        ({"project": {"a": "x"}, "protect": ["*" * 5_000]}, "each of 1000 characters"),
    ],
    ids=["a million files", "long paths", "a path of 2 MB", "a long glob"],
)
def test_checked_refuses_what_is_more_than_can_be_sent(given: dict[str, object], words: str) -> None:
    """Counted, whatever the sizes of the texts say; the error is short."""
    with pytest.raises(InputError, match=words) as caught:
        checked(given)
    assert len(str(caught.value)) < 1_000
