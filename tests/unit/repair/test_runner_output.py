"""What test runners print at their end is read as counts."""

import pytest

from agent.repair.report import TestReport
from agent.repair.runner_output import Counts, counts, names_of_failing
from agent.sandbox.provider import CommandResult

UNITTEST = """\
FE.s
======================================================================
ERROR: test_b (tests.test_a.TestB.test_b)
----------------------------------------------------------------------
FAIL: test_c (tests.test_a.TestB.test_c)
----------------------------------------------------------------------
Ran 4 tests in 0.001s

FAILED (failures=1, errors=1, skipped=1)
"""
NODE = "# tests 3\n# suites 0\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 1\n# todo 0\n"
CARGO = (
    "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
    "test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out\n"
)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("3 passed in 0.02s", Counts(3)),
        ("= 1 failed, 2 passed, 1 error in 1.5s =", Counts(2, 2)),
        ("no tests ran in 0.01s", Counts()),
        ("5 deselected in 0.02s", Counts()),
        ("2 skipped in 0.02s", Counts(skipped=2)),
        (UNITTEST, Counts(1, 2, 1)),
        ("Ran 0 tests in 0.000s\n\nOK", Counts()),
        ("Ran 0 tests in 0.000s\n\nNO TESTS RAN", Counts()),
        ("Ran 1 test in 0.000s\n\nNO TESTS RAN (skipped=1)", Counts(skipped=1)),
        ("Ran 2 tests in 0.1s\n\nOK (skipped=1, expected failures=1)", Counts(1, 0, 1)),
        ("Ran 2 tests in 0.1s\n\nFAILED (unexpected successes=1)", Counts(1, 1)),
        ("Tests:       1 failed, 2 skipped, 3 passed, 6 total", Counts(3, 1, 2)),
        ("\x1b[2m      Tests \x1b[22m \x1b[31m1 failed\x1b[39m | \x1b[32m2 passed\x1b[39m (3)", Counts(2, 1)),
        ("No tests found, exiting with code 0", Counts()),
        ("No test files found, exiting with code 0", Counts()),
        (NODE, Counts(1, 1, 1)),
        ("  3 passing (5ms)\n  1 failing\n", Counts(3, 1)),
        ("  0 passing (1ms)", Counts()),
        (CARGO, Counts(3, 3, 1)),
        ("?   example.com/a [no test files]\nok  example.com/b 0.01s [no tests to run]", Counts()),
        ("?   example.com/a [no test files]\nok  example.com/b 0.01s", None),
        ("[INFO] Tests run: 5, Failures: 1, Errors: 1, Skipped: 1", Counts(2, 2, 1)),
        ("3 examples, 1 failure, 1 pending", Counts(1, 1, 1)),
        ("3 runs, 4 assertions, 1 failures, 0 errors, 0 skips", Counts(2, 1)),
        ("OK (3 tests, 5 assertions)", Counts(3)),
        ("Tests: 3, Assertions: 3, Failures: 1.", Counts(2, 1)),
        ("No tests executed!", Counts()),
        ("Passed!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4", Counts(3, 0, 1)),
        ("67% tests passed, 1 tests failed out of 3", Counts(2, 1)),
        ("1 xfailed in 0.03s", Counts(1)),
        ("2 passed, 3 subtests passed, 1 warning in 0.03s", Counts(2)),
        ("1 test collected in 0.01s", Counts()),
        ("2 passed in 3661.00s (1:01:01)", Counts(2)),
        ("1..3\nok 1 - a\nnot ok 2 - b\nok 3 # skip why\n", Counts(1, 1, 1)),
        ("1..1\nnot ok 1 # TODO later\n", Counts(skipped=1)),
        ("Files=0, Tests=0,  0 wallclock secs\nResult: NOTESTS\n", Counts()),
        ("=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \texample.com/a\t0.1s", Counts(1)),
        (" 3 pass\n 1 fail\nRan 4 tests across 1 files. [1.00ms]", Counts(3, 1)),
        ("ok | 3 passed | 0 failed (1ms)", Counts(3)),
        ("0 passed and 0 failed.\nTest passed.", Counts()),
        ("> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s", Counts()),
        ("[INFO] No tests to run.", Counts()),
        ("all fine\n", None),
        # Words of a program's own, which no runner printed there.
        ("checking\nOK\n", None),
        ("INFO imported 0 passed in 3s\n", None),
        ("1 warning in 0.03s\n", None),
        ("", None),
    ],
)
def test_each_runner_is_counted_by_its_own_words(output: str, expected: Counts | None) -> None:
    """Tests that ran, failed and were skipped; None where nothing known was printed."""
    assert counts(output) == expected


def test_of_several_runners_one_that_ran_tests_counts() -> None:
    """A last one that had nothing to run does not take away what another showed."""
    assert counts("2 passed in 0.1s\nRan 0 tests in 0.0s\n\nOK\n") == Counts(2)


def test_unittest_names_its_failing_tests() -> None:
    """As it prints them; pytest's own names come first."""
    assert names_of_failing(UNITTEST) == (
        "test_b (tests.test_a.TestB.test_b)",
        "test_c (tests.test_a.TestB.test_c)",
    )


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("Ran 0 tests in 0.000s\n\nOK", "no test ran, although the test command ended with exit code 0"),
        ("2 skipped in 0.1s", "no test ran (2 tests skipped), although"),
        ("5 deselected in 0.02s", "no test ran, although"),
        ("1 failed, 2 passed in 0.1s", "1 test failed, although the test command ended with exit code 0"),
        ("--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tx/a\t0.1s", "tests failed, although"),
    ],
)
def test_exit_code_0_is_not_green_against_what_was_counted(output: str, reason: str) -> None:
    """Such as a command that ends in `|| true`, or finds no test."""
    report = TestReport.of(CommandResult(0, output, ""))
    assert not report.green
    assert report.told().startswith(reason)
    assert report.as_state()["green"] is False


def test_a_pass_that_was_not_counted_says_so() -> None:
    """The exit code decides, and a reader learns that nothing else was seen."""
    report = TestReport.of(CommandResult(0, "fine\n", ""))
    assert (report.green, report.told()) == (True, "passed with exit code 0, not counted")
