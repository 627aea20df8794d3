"""A model that cheats, strays, loops or talks rubbish is caught; what is odd is told."""

import re
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from agent.cli.repair_text import report_lines
from agent.client.decode import test_report
from server.repair.conftest import MakeRepair
from support.alive import alive
from support.e2b_process import E2BLocal
from support.played_model import call
from support.repairs import ADD, APPROVE, CALC, DOUBLE, git_applied, plan


async def test_changed_tests_are_put_back_and_told(make_repair: MakeRepair, tmp_path: Path) -> None:
    """Edited, deleted, replaced by a link or added: none of it decides, all of it is named."""
    cheat = (
        "echo exit 0 > tests/run.sh; rm tests/more.sh; echo > tests/new.sh; ln -sf /dev/null tests/third.sh"
    )
    project = CALC | {"tests/more.sh": "more\n", "tests/third.sh": "third\n"}
    repair = make_repair(plan(("calc.sh", cheat)), plan(ADD, DOUBLE))
    await repair.start(project)
    state = await repair.answer(APPROVE)
    assert state["status"] is None
    assert state["tests_after"]["exit_code"] == 1
    assert state["changed_tests"] == ["tests/more.sh", "tests/new.sh", "tests/run.sh", "tests/third.sh"]
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    assert "Changes to these tests were undone: tests/more.sh, " in state["summary"]
    after = git_applied(project, state["diff"], tmp_path)
    assert {path for path in after if after[path] != project.get(path)} == {"calc.sh"}


async def test_protect_is_the_callers_to_choose(make_repair: MakeRepair) -> None:
    """Other globs protect other files, and none protects none: then the cheat is in the patch to be seen."""
    repair = make_repair(plan(("calc.sh", "echo exit 0 > tests/run.sh; echo x >> spec.txt")))
    await repair.start(CALC | {"spec.txt": "s\n"}, protect=["*.txt"])
    state = await repair.answer(APPROVE)
    assert (state["status"], state["changed_tests"]) == ("passed", ["spec.txt"])
    assert "+exit 0" in state["diff"]
    assert "spec.txt" not in state["diff"]


async def test_files_outside_the_project_turn_no_test_green(make_repair: MakeRepair) -> None:
    """What is written beside the project is named; the tests run in a sandbox without it."""
    cheat = "echo 'bash() { true; }; export -f bash' >> ../.bash_profile; echo > ../stray"
    repair = make_repair(plan(("calc.sh", cheat)))
    await repair.start(limits={"tries": 1})
    state = await repair.answer(APPROVE)
    assert (state["status"], state["tests_after"]["exit_code"]) == ("failed", 1)
    assert state["outside"] == [".bash_profile", "stray"]
    assert "Written outside the project, and no part of the patch: .bash_profile, stray" in state["summary"]
    assert [e["event"] for e in repair.events if e["type"] == "sandbox"] == ["created", "connected"]


async def test_honest_work_passes_in_the_new_sandbox_too(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """A stray file is named, and costs nothing; both sandboxes are ended."""
    repair = make_repair(plan(ADD, (DOUBLE[0], f"{DOUBLE[1]}; echo note > ../notes.txt")))
    await repair.start()
    state = await repair.answer(APPROVE)
    assert (state["status"], state["outside"]) == ("passed", ["notes.txt"])
    assert await alive(sandboxes, thread=repair.thread_id) == []


async def test_file_tools_refuse_to_leave_the_project(make_repair: MakeRepair) -> None:
    """A path that leads out is an error the model reads; nothing is written there."""
    seen: list[str] = []

    def act(request: str, since: list[BaseMessage]) -> AIMessage:
        if len(since) < 2:
            return call("write_file", path="../escaped.txt", content="x")
        seen.append(str(since[-1].text))
        return AIMessage("It would not let me.")

    repair = make_repair(plan(ADD))
    repair.mind.act = act
    await repair.start(limits={"tries": 1})
    state = await repair.answer(APPROVE)
    assert "outside the work folder" in seen[0]
    assert (state["status"], state["outside"], state["diff"]) == ("failed", [], "")


async def test_looping_model_is_stopped(make_repair: MakeRepair) -> None:
    """A step has a limit of model calls; the run goes on to the tests, which decide."""
    calls: list[str] = []

    def act(request: str, since: list[BaseMessage]) -> AIMessage:
        calls.append(request)
        return call("run_command", command="true")

    repair = make_repair(plan(ADD))
    repair.mind.act = act
    await repair.start(limits={"tries": 1})
    state = await repair.answer(APPROVE)
    assert (state["status"], len(calls)) == ("failed", 25)
    assert "limit" in state["steps"][0]["report"].lower()


@pytest.mark.parametrize(
    "rubbish",
    [
        AIMessage("I would rather not."),
        {"summary": "s", "steps": []},
        {"summary": "s", "steps": [{"file": "a"}]},
        plan(*[ADD] * 21),
        plan(("/etc/passwd", "x")),
        plan(("tests/run.sh", "x")),
    ],
)
async def test_rubbish_plans_are_sent_back_then_refused(
    make_repair: MakeRepair, sandboxes: E2BLocal, rubbish: object
) -> None:
    """Three asks, each with what was wrong; then the run ends with a summary, and asks no human."""
    repair = make_repair(rubbish)
    state = await repair.start()
    assert (state["status"], len(repair.mind.asked)) == ("failed", 3)
    assert "Your last answer was not a valid plan" in repair.mind.asked[1]
    assert "The model gave no valid plan in 3 tries. The last one: " in state["summary"]
    assert await alive(sandboxes, thread=repair.thread_id) == []


async def test_plans_for_a_protected_file_end_with_what_protects_it(make_repair: MakeRepair) -> None:
    """The user reads which file, which glob, and how to allow it; and so allowed, it is changed."""
    project = {"spec/parser.py": "bad\n", "check.sh": "grep -q good spec/parser.py\n"}
    steps = plan(("spec/parser.py", "echo good > spec/parser.py"))
    refused = await make_repair(steps).start(project, test_command="bash check.sh")
    assert refused["status"] == "failed"
    told = refused["summary"]
    assert "'spec/parser.py' is protected by '**/spec/**'" in told
    assert "`protect` (`--protect`) without that glob" in told
    repair = make_repair(steps)
    await repair.start(project, test_command="bash check.sh", protect=["check.sh"])
    assert (await repair.answer(APPROVE))["status"] == "passed"


async def test_rubbish_plan_that_is_mended_goes_on(make_repair: MakeRepair) -> None:
    """The second answer counts."""
    repair = make_repair(plan(("tests/run.sh", "x")), plan(ADD))
    await repair.start()
    assert len(await repair.questions()) == 1
    assert "'tests/run.sh' is protected by '**/tests/**'" in repair.mind.asked[1]


async def test_same_failures_with_the_same_changes_stop_early(make_repair: MakeRepair) -> None:
    """A second try that leads nowhere new is the last; the diff so far is kept."""
    repair = make_repair(plan(ADD))
    await repair.start(limits={"tries": 9})
    await repair.answer(APPROVE)
    state = await repair.answer(APPROVE)
    assert (state["status"], state["iteration"]) == ("no_progress", 2)
    assert "+add()" in state["diff"]
    assert state["summary"].startswith("Stopped: with the same changes")


async def test_other_changes_are_progress(make_repair: MakeRepair) -> None:
    """As many tries as the limit says, when each changes something."""
    repair = make_repair(plan(("a", "echo >> a")))
    await repair.start(limits={"tries": 3})
    await repair.answer(APPROVE)
    await repair.answer(APPROVE)
    state = await repair.answer(APPROVE)
    assert (state["status"], state["iteration"]) == ("failed", 3)
    assert state["summary"].startswith("The tests still fail after 3 tries.")


async def test_flaky_tests_are_noticed(make_repair: MakeRepair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red, then green without a change: the exit code decides, and the summary says what that is worth."""
    repair = make_repair(plan(("a", "true")))
    monkeypatch.setenv("WEATHER", "rain")
    await repair.start({"a": "x"}, test_command='test "$WEATHER" = sun')
    monkeypatch.setenv("WEATHER", "sun")
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    assert "Flaky: the tests failed at first and pass now, and no file" in state["summary"]


async def test_flaky_failures_on_the_same_files_are_noticed(
    make_repair: MakeRepair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red in one way, then in another, on the same files: no lack of progress, but odd."""
    repair = make_repair(plan(("a", "echo y > a")))
    monkeypatch.setenv("WEATHER", "rain")
    await repair.start({"a": "x"}, test_command='echo "$WEATHER"; exit 1')
    await repair.answer(APPROVE)
    monkeypatch.setenv("WEATHER", "snow")
    state = await repair.answer(APPROVE)
    assert state["status"] is None
    assert state["warnings"] == ["Flaky: the tests ended otherwise than before on the very same files."]


async def test_tests_that_no_longer_run_are_told(make_repair: MakeRepair) -> None:
    """Green because fewer ran: the exit code decides, and the summary says so."""
    project = {"pytest.ini": "[pytest]\n", "test_a.py": "def test_a(): assert 0\ndef test_b(): pass\n"}
    repair = make_repair(plan(("pytest.ini", "echo 'addopts = -k test_b' >> pytest.ini")))
    await repair.start(project, test_command="PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q")
    state = await repair.answer(APPROVE)
    assert (state["status"], state["changed_tests"]) == ("passed", [])
    assert state["warnings"] == ["Fewer tests ran than before the repair: 1 instead of 2."]


UNITTEST = "python -m unittest discover -s checks"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"{UNITTEST} || true", "no test ran, although the test command ended with exit code 0"),
        ("python -m pytest -q || true", "no test ran, although"),
        ("python -m pytest -q", "no test ran, but the test command ended with exit code 5"),
        ("python -m pytest -q || echo '3 passed'", "no test ran, although"),
        ("echo '1..0 # skipped'", "no test ran, although"),
        ("true", "no test ran: the test command only ends, waits or prints"),
    ],
)
async def test_a_command_that_runs_no_test_is_not_green(
    make_repair: MakeRepair, command: str, words: str
) -> None:
    """It has its own status, said first; nothing is planned on it."""
    repair = make_repair(plan(ADD))
    project = {"checks/notes.py": "x = 1\n", "checks/__init__.py": ""}
    state = await repair.start(project, test_command=f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {command}")
    assert (state["status"], state["tests_before"]["green"]) == ("nothing_tested", False)
    assert state["summary"].startswith("No test ran; nothing was repaired.")
    assert words in state["summary"]
    assert repair.mind.asked == []


async def test_a_patch_after_which_no_test_runs_does_not_pass(make_repair: MakeRepair) -> None:
    """Green must not be had by having nothing left to run."""
    project = {"suite/test_a.py": "from unittest import *\nclass A(TestCase):\n  def test(self): assert 0\n"}
    command = "cd suite && python -m unittest discover -p 'test_*.py' || test $? -eq 5"
    repair = make_repair(plan(("suite/test_a.py", "echo > suite/test_a.py")))
    state = await repair.start(project, test_command=command, protect=[], limits={"tries": 1})
    assert state["tests_before"]["failed"] == 1
    state = await repair.answer(APPROVE)
    assert (state["status"], state["tests_after"]["green"]) == ("failed", False)
    assert "Tests after: no test ran, although" in state["summary"]


async def test_tests_that_fail_behind_exit_code_0_are_red(make_repair: MakeRepair) -> None:
    """Such as `pytest || true`: what was counted as failed did fail, and is repaired."""
    project = {"num.py": "x = 1\n", "test_num.py": "import num\ndef test_x(): assert num.x == 2\n"}
    repair = make_repair(plan(("num.py", "echo x = 2 > num.py")))
    command = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q || true"
    state = await repair.start(project, test_command=command)
    assert "1 test failed, although" in state["tests_before"]["reason"]
    assert (await repair.answer(APPROVE))["status"] == "passed"


async def test_tests_changed_while_they_run_are_red(make_repair: MakeRepair) -> None:
    """Something left running, or the code under test, rewrites a test in the midst of the run."""
    project = {"code.sh": "false\n", "tests/run.sh": ". ./code.sh\n"}
    repair = make_repair(plan(("code.sh", "echo 'echo true > tests/run.sh; exit 0' > code.sh")))
    await repair.start(project, test_command="bash tests/run.sh", limits={"tries": 1})
    state = await repair.answer(APPROVE)
    assert (state["status"], state["tests_after"]["exit_code"]) == ("failed", 0)
    assert "tests/run.sh changed while the tests ran" in state["summary"]
    # Every client is given the same verdict, as words and as a field.
    (event,) = [event for event in repair.events if event.get("phase") == "verify" and "report" in event]
    for report in (event["report"], state["tests_after"]):
        assert report["green"] is False
        assert test_report(report).green is False
        shown = "\n".join(line.plain for line in report_lines(test_report(report)))
        assert "✗ tests/run.sh changed while the tests ran" in shown
        assert "✓" not in shown


async def test_steps_are_limited_over_all_tries(make_repair: MakeRepair) -> None:
    """The planner is told how many are left; with none left the run ends."""
    repair = make_repair(plan(ADD), plan(("a", "echo > a")))
    await repair.start(limits={"steps": 2})
    await repair.answer(APPROVE)
    assert "At most 1 steps are left." in repair.mind.asked[1]
    state = await repair.answer(APPROVE)
    assert (state["status"], state["done"]) == ("budget", 2)
    assert state["summary"].startswith("Stopped: the limit of 2 steps is used up.")


async def test_working_time_is_limited_and_what_was_done_is_verified(make_repair: MakeRepair) -> None:
    """A step is cut short where the time is up; the tests still run, and the status says why it ended."""
    repair = make_repair(plan(ADD, ("b", "sleep 60"), DOUBLE))
    await repair.start(limits={"time_s": 10})
    state = await repair.answer(APPROVE)
    assert (state["status"], state["step"]) == ("budget", 2)
    assert "Cut short" in state["steps"][1]["report"]
    assert state["tests_after"]["output"] == "FAIL double\n"
    assert re.match(r"Stopped: the limit of 10 s of working time is used up.", state["summary"])
