"""What the set-up command does in a sandbox that replaces a lost one is the set-up's, not the agent's."""

import pytest
from e2b_code_interpreter import AsyncSandbox

from server.repair.conftest import MakeRepair
from support.alive import alive
from support.e2b_process import E2BLocal
from support.repairs import ADD, APPROVE, DOUBLE, plan

OUTSIDE = "echo cfg > ~/tool.cfg"
IN_THE_PROJECT = "echo $RANDOM$RANDOM > built.txt; echo $RANDOM >> built-$RANDOM.log"
CHANGED = 'echo "# $RANDOM$RANDOM" >> tests/run.sh'
LEFT = "mkdir -p node_modules/x; echo $RANDOM > node_modules/x/index.js"


@pytest.mark.parametrize(
    ("setup", "there"),
    [
        (OUTSIDE, "test -e ~/tool.cfg"),
        (IN_THE_PROJECT, "ls built.txt built-*.log"),
        (CHANGED, "grep '^#' tests/run.sh"),
        (LEFT, "test -e node_modules/x/index.js"),
    ],
)
@pytest.mark.parametrize("red", [False, True])
async def test_setup_that_runs_again_is_not_laid_to_the_agent(
    make_repair: MakeRepair, sandboxes: E2BLocal, setup: str, there: str, red: bool
) -> None:
    """The sandbox dies at the question: one new sandbox; the set-up's work is there, and nobody else's."""
    add = (ADD[0], f"{there} && {ADD[1]}")
    repair = make_repair(plan(add), plan(DOUBLE)) if red else make_repair(plan(add, DOUBLE))
    before = await repair.start(setup_command=setup)
    (one,) = await alive(sandboxes, thread=repair.thread_id)
    await AsyncSandbox.kill(one.sandbox_id, **sandboxes.options)
    state = await repair.answer(APPROVE)
    if red:
        assert state["status"] is None
        state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    assert set(state["changes"]) == {"calc.sh"}
    assert (state["outside"], state["left_out"], state["warnings"]) == ([], {}, [])
    assert "Written outside" not in state["summary"]
    made = [event["event"] for event in repair.events if event["type"] == "sandbox"]
    assert made.count("replaced") == 1
    assert made.count("created") == 1
    assert before["sandbox_id"] != state["sandbox_id"]


async def test_what_the_agent_writes_outside_is_still_told_after_a_replacement(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """The agent's file is named, the set-up's beside it is not, also where both steps write one."""
    repair = make_repair(
        plan(("calc.sh", "echo a > ~/first; " + ADD[1]), ("calc.sh", "echo b > ~/second; " + DOUBLE[1]))
    )
    await repair.start(setup_command=OUTSIDE)
    (one,) = await alive(sandboxes, thread=repair.thread_id)
    await AsyncSandbox.kill(one.sandbox_id, **sandboxes.options)
    state = await repair.answer(APPROVE)
    assert (state["status"], state["outside"]) == ("passed", ["first", "second"])
    assert "tool.cfg" not in state["summary"]
