"""Test commands that test nothing, as far as it is plain to see."""

import pytest

from agent.repair.testing import tests_nothing as only_ends


@pytest.mark.parametrize(
    "command",
    [
        "true",
        ":",
        "exit 0",
        "echo all good && true",
        "cd src; true  # pytest",
        "echo a\ntrue",
        "A=1 true",
        "",
    ],
)
def test_command_that_only_ends_or_prints_tests_nothing(command: str) -> None:
    """Its exit code says nothing of the project."""
    assert only_ends(command)


@pytest.mark.parametrize(
    "command",
    [
        "pytest || true",
        "echo begun; pytest",
        "echo begun\npytest",
        "echo $(pytest)",
        "echo `pytest`",
        "true && (pytest)",
        "bash tests/run.sh",
        "A=1 pytest",
        "test -f built",
        "echo 'open",
    ],
)
def test_command_that_may_test_something_is_not_judged_by_its_words(command: str) -> None:
    """What runs there is for its output and its exit code to say."""
    assert not only_ends(command)
