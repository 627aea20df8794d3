"""Running the project's own commands: the set-up and the tests."""

import asyncio
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agent.repair.report import TestReport
from agent.repair.workspace import META, ROOT, Workspace
from agent.sandbox.policy import SandboxPolicy
from agent.sandbox.provider import CommandResult

State = Mapping[str, Any]

NO_TEST = "no test ran: the test command only ends, waits or prints"
_NO_TESTS = {"true", "/bin/true", "/usr/bin/true", ":", "exit", "echo", "printf", "sleep", "cd", "pwd"}

# By variable, so that it reaches a pytest that the command starts in its turn (`make test`); other runners
# take no notice. xunit1, since only that names each test's file.
_WITH_REPORT = """\
junit="$(cd {meta} && pwd)/junit.xml"
rm -rf "$junit"
export PYTEST_ADDOPTS="${{PYTEST_ADDOPTS:-}} --junitxml='$junit' -o junit_family=xunit1"
unset junit
{command}"""


def policy_of(state: State) -> SandboxPolicy:
    """Return the sandbox policy the run began with."""
    return SandboxPolicy.model_validate(state["sandbox_policy"])


def folder_of(state: State) -> str:
    """Return the folder in the sandbox that the project's commands start in."""
    return posixpath.normpath(posixpath.join(ROOT, state["workdir"]))


async def set_up(work: Workspace, state: State) -> CommandResult:
    """Run the set-up command."""
    limit_s = policy_of(state).command_timeout_s
    return await work.run(state["setup_command"], timeout_s=limit_s, folder=folder_of(state))


async def test(work: Workspace, state: State) -> TestReport:
    """Run the tests; a folder that is not there is red, too."""
    folder = folder_of(state)
    command = _WITH_REPORT.format(meta=posixpath.relpath(META, folder), command=state["test_command"])
    try:
        result = await work.run(command, timeout_s=policy_of(state).command_timeout_s, folder=folder)
    except NotADirectoryError:
        reason = f"the folder {state['workdir'] or 'of the project'} is not there"
        return TestReport(None, False, None, None, (), "", reason=reason)
    # Read in a thread: what the tests left may be large.
    report = await asyncio.to_thread(TestReport.of, result, await work.junit())
    if report.green and report.passed is None and tests_nothing(state["test_command"]):
        return replace(report, passed=0, failed=0, skipped=0, reason=NO_TEST)
    return report


def tests_nothing(command: str) -> bool:
    """Whether a command is made of words that end, wait or print, and of nothing else: `true`, `echo ok`.

    False where that is not plain to see.
    """
    if set(command) & set("$`<>(){}\\"):
        return False
    try:
        lines = [[*shlex.shlex(line, posix=True, punctuation_chars=True)] for line in command.split("\n")]
    except ValueError:
        return False
    return all(word in _NO_TESTS for words in lines for word in _programs(words))


def _programs(words: list[str]) -> Iterator[str]:
    """Return the first word of each command in a line, behind the variables that it is given."""
    begins = True
    for word in words:
        separates = set(word) <= set(";&|")
        if begins and not separates and not re.match(r"\w+=", word):
            yield word
            begins = False
        begins = begins or separates
