"""What is read from a run of the tests."""

import pytest

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


def test_report_says_why_it_is_red_where_no_exit_code_does() -> None:
    """A timeout and an unknown outcome are told as what they are."""
    stopped = TestReport.of(CommandResult(None, "", "", timed_out=True, duration_s=5.2))
    assert stopped.told() == "the tests did not end within their limit and were stopped after 5 s"
    assert "outcome is unknown" in TestReport.of(CommandResult(None, "", "")).told()


def test_report_of_a_red_run_never_reads_like_a_pass() -> None:
    """Where all that ran passed, and the command failed none the less, it says so."""
    covered = TestReport.of(
        CommandResult(1, "14 passed in 1s\nFAIL Required coverage of 90% not reached", "")
    )
    assert covered.told() == "14 passed, but the test command ended with exit code 1"
    empty = TestReport.of(CommandResult(5, "no tests ran in 0.01s", ""))
    assert empty.told() == "no test ran, but the test command ended with exit code 5"


def test_report_names_what_a_shell_means_by_its_exit_code() -> None:
    """A runner that is not installed is no failing test."""
    told = TestReport.of(CommandResult(127, "", "sh: foo: command not found")).told()
    assert told == "failed with exit code 127 (a program was not found)"


def test_report_knows_where_there_is_nothing_to_run() -> None:
    """With exit code 0, or with that of a runner without tests; a usage error may be one to mend."""
    words = "no tests ran in 0.01s"
    found = {code: TestReport.of(CommandResult(code, words, "")).nothing_to_run for code in (0, 5, 4, 1)}
    assert found == {0: True, 5: True, 4: False, 1: False}


def test_report_counts_what_was_expected_to_fail_as_run() -> None:
    """A suite of nothing else is no empty one."""
    junit = b'<testsuite><testcase name="a"><skipped type="pytest.xfail" message=""/></testcase></testsuite>'
    report = TestReport.of(CommandResult(0, "1 xfailed in 0.1s", ""), junit)
    assert (report.green, report.passed, report.skipped) == (True, 1, 0)


JUNIT = b"""<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.test_a.TestB" name="test_c[a b]" file="tests/test_a.py"><failure/></testcase>
<testcase classname="tests.test_a" name="test_d" file="tests/test_a.py"><failure/></testcase>
<testcase classname="tests.test_a" name="test_d" file="tests/test_a.py"><error/></testcase>
<testcase classname="tests.test_a" name="test_e" file="tests/test_a.py"/>
<testcase classname="" name="tests.test_f"><error><![CDATA[x]]></error></testcase>
<testcase classname="tests.test_a" name="test_g" file="tests/test_a.py"><skipped/></testcase>
</testsuite></testsuites>"""


def test_report_prefers_what_pytest_wrote_to_what_it_printed() -> None:
    """Names are whole, and a failed test whose teardown fails too counts once."""
    report = TestReport.of(CommandResult(1, "9 failed in 1s", ""), JUNIT)
    assert (report.passed, report.failed, report.skipped) == (1, 3, 1)
    assert report.failing == (
        "tests/test_a.py::TestB::test_c[a b]",
        "tests/test_a.py::test_d",
        "tests.test_f",
    )


@pytest.mark.parametrize("junit", [b"", b"<nonsense", b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'])
def test_report_falls_back_to_the_output(junit: bytes) -> None:
    """Where pytest's report is missing, broken, or written to do harm."""
    assert TestReport.of(CommandResult(1, RED, ""), junit).failed == 3


def test_report_leaves_out_the_line_about_its_own_file() -> None:
    """What the project's owner did not ask for is not shown."""
    line = "---- generated xml file: /home/user/.repair/junit.xml ----\n"
    assert TestReport.of(CommandResult(1, f"a\n{line}b\n", "")).output == "a\nb\n"


def test_report_survives_state() -> None:
    """State holds plain data; the report read back is the same."""
    report = TestReport.of(CommandResult(1, RED, ""))
    assert TestReport.from_state(report.as_state()) == report
