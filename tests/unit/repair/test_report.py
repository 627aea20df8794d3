"""What is read from a run of the tests."""

from agent.repair.report import TestReport
from agent.sandbox.provider import CommandResult

RED = """\
..F.E
FAILED tests/test_a.py::test_one - AssertionError: assert 1 == 2
FAILED tests/test_a.py::test_many[a b-1] - ValueError: 7 passed in my head
ERROR tests/test_b.py::test_two - RuntimeError
2 failed, 2 passed, 1 error in 0.12s
"""


def test_report_reads_counts_and_names_from_pytest() -> None:
    """Errors count as failures; names keep their parameters."""
    report = TestReport.of(CommandResult(1, RED, ""))
    assert (report.passed, report.failed, report.green) == (2, 3, False)
    assert report.failing == (
        "tests/test_a.py::test_one",
        "tests/test_a.py::test_many[a b-1]",
        "tests/test_b.py::test_two",
    )


def test_report_of_another_runner_has_no_counts() -> None:
    """Only the exit code decides; what is not known is not guessed."""
    report = TestReport.of(CommandResult(0, "ok\n", ""))
    assert (report.green, report.passed, report.failed, report.failing) == (True, None, None, ())


def test_report_is_not_green_when_the_command_did_not_end() -> None:
    """A timeout and an unknown outcome are red."""
    assert not TestReport.of(CommandResult(None, "5 passed in 1s", "", timed_out=True)).green
    assert not TestReport.of(CommandResult(None, "5 passed in 1s", "")).green


def test_report_survives_state() -> None:
    """State holds plain data; the report read back is the same."""
    report = TestReport.of(CommandResult(1, RED, ""))
    assert TestReport.from_state(report.as_state()) == report
