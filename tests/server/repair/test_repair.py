"""A whole repair on a real sandbox: what is planned, done, verified, told and handed over."""

import json
from pathlib import Path

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from server.repair.conftest import MakeRepair
from support.alive import alive
from support.e2b_process import E2BLocal
from support.repairs import ADD, APPROVE, CALC, DOUBLE, git_applied, plan

MENDED = "add() { echo $(($1 + $2)); }\ndouble() { echo $(($1 + $1)); }\n"


async def test_repair_approved_ends_green_with_a_patch(
    make_repair: MakeRepair, sandboxes: E2BLocal, tmp_path: Path
) -> None:
    """A project in shell: red, plan, approval, a step a visit, each with its diff, green, a patch."""
    repair = make_repair(plan(ADD, DOUBLE))
    state = await repair.start()
    assert (state["tests_before"]["exit_code"], state["tests_before"]["output"]) == (
        1,
        "FAIL add\nFAIL double\n",
    )
    (asleep,) = await alive(sandboxes, thread=repair.thread_id)
    assert asleep.state.value == "paused"
    state = await repair.answer(APPROVE)
    assert (state["status"], state["tests_after"]["exit_code"]) == ("passed", 0)
    first, second = (step["diff"] for step in state["steps"])
    assert "+add() { echo $(($1 + $2)); }" in first
    assert "+double() { echo $(($1 + $1)); }" in second
    assert git_applied(CALC, state["diff"], tmp_path) == CALC | {"calc.sh": MENDED}
    assert await alive(sandboxes, thread=repair.thread_id) == []
    assert state["sandbox_id"] == ""
    assert (state["warnings"], state["outside"], state["changed_tests"], state["left_out"]) == (
        [],
        [],
        [],
        {},
    )
    assert repair.phases() == ["bootstrap", "plan", "execute", "execute", "verify", "summarize"]
    steps = [(e["step"], e["steps"]) for e in repair.events if e.get("phase") == "execute"]
    assert steps == [(1, 2), (2, 2)]
    said = [message.text.split(":")[0] for message in state["messages"]]
    assert said[:3] == ["Plan, try 1 of 3", "Step 1 of 2", "Step 2 of 2"]


async def test_planner_is_shown_files_output_and_goal(make_repair: MakeRepair) -> None:
    """All names, the texts of the files, what the failing run printed, and the human's wish."""
    repair = make_repair(plan(ADD))
    await repair.start(CALC | {"notes/big.txt": "x" * 300_000}, goal="only add")
    (asked,) = repair.mind.asked
    assert asked.startswith("Goal: only add\nAttempt 1 of 3")
    assert "<files>\ncalc.sh\nnotes/big.txt\ntests/run.sh\n</files>" in asked
    assert '<file path="calc.sh">\nadd() {' in asked
    assert 'exit_code="1">\nFAIL add\nFAIL double\n</test_output>' in asked
    assert "xxxx" not in asked


async def test_second_plan_knows_what_the_first_did(make_repair: MakeRepair, tmp_path: Path) -> None:
    """Red after the first try: the next plan is made with its story and the files as they are; then green."""
    repair = make_repair(plan(ADD), plan(DOUBLE))
    await repair.start()
    state = await repair.answer(APPROVE)
    assert state["status"] is None
    assert "<previous_attempts>\nPlan: Mend it.\n- calc.sh: sed" in repair.mind.asked[1]
    assert "Afterwards the tests were run: failed with exit code 1." in repair.mind.asked[1]
    assert "echo $(($1 + $2))" in repair.mind.asked[1]
    (question,) = await repair.questions()
    assert question.value["iteration"] == 2
    state = await repair.answer(APPROVE)
    assert (state["status"], state["iteration"]) == ("passed", 2)
    assert git_applied(CALC, state["diff"], tmp_path) == CALC | {"calc.sh": MENDED}


async def test_pytest_project_names_its_failing_tests(make_repair: MakeRepair) -> None:
    """By pytest's own report, though the output names none and another command calls pytest."""
    project = {
        "calc.py": "def add(a, b):\n    return a - b\n",
        "check.sh": "export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1\npython -m pytest -q > /dev/null 2>&1\n",
        "tests/test_calc.py": "import pytest\nfrom calc import add\n\n\nclass TestAdd:\n"
        "    @pytest.mark.parametrize('b', [0, 'a b', 2])\n    def test_sum(self, b):\n"
        "        assert b == 'a b' or add(2, b) == 2 + b\n\n\n@pytest.mark.skip\ndef test_not():\n    pass\n",
    }
    repair = make_repair(plan(("calc.py", "sed -i 's/a - b/a + b/' calc.py")))
    state = await repair.start(project, test_command="bash check.sh")
    before = state["tests_before"]
    assert before["failing"] == ["tests/test_calc.py::TestAdd::test_sum[2]"]
    assert (before["passed"], before["failed"], before["skipped"]) == (2, 1, 1)
    state = await repair.answer(APPROVE)
    assert (state["status"], state["tests_after"]["passed"]) == ("passed", 3)
    assert "Tests before: 1 failed, 2 passed.\nTests after: 3 passed." in state["summary"]
    counts = [event["report"]["failed"] for event in repair.events if event["type"] == "tests"]
    assert counts == [1, 0]


async def test_node_project_in_a_folder_of_its_own(make_repair: MakeRepair, tmp_path: Path) -> None:
    """Set-up and tests start in `workdir`; what the set-up leaves behind is no part of the patch."""
    project = {
        "web/sum.mjs": "export const sum = (a, b) => a - b\n",
        "web/sum.test.mjs": "import { sum } from './sum.mjs'\nimport fs from 'node:fs'\n"
        "if (fs.readFileSync('made') + sum(1, 2) !== 'by set-up\\n3') process.exit(7)\n",
    }
    repair = make_repair(plan(("web/sum.mjs", "sed -i 's/a - b/a + b/' web/sum.mjs")))
    state = await repair.start(
        project, workdir="web", test_command="node sum.test.mjs", setup_command="echo by set-up > made"
    )
    assert (state["tests_before"]["exit_code"], state["by_products"]) == (7, ["web/made"])
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    assert "Test command: cd web && node sum.test.mjs" in repair.mind.told[0]
    mended = {"web/sum.mjs": "export const sum = (a, b) => a + b\n"}
    assert git_applied(project, state["diff"], tmp_path) == project | mended


async def test_patch_holds_what_a_patch_can_and_says_what_it_cannot(
    make_repair: MakeRepair, tmp_path: Path
) -> None:
    """New, deleted, renamed, odd names, modes, no newline at the end, any bytes; links are named."""
    project = CALC | {
        'not "touched"\t.txt': "kept\n",
        "gone.txt": "bye",
        "old name": "same\n",
        "run": "#!/bin/sh\n",
        "plain": "x\n",
    }
    work = """
sed -i 's/1 - /1 + /; s/ + 1)/)/' calc.sh; printf 'no newline' > new.txt; rm gone.txt; : > empty
mkdir -p 'd e'; mv 'old name' $'d e/qu"ote\\\\ä\\ttab'
chmod +x plain; printf '#!/bin/sh\\n' > tool; chmod +x tool
printf 'a\\0b' > data.bin; ln -s /etc/passwd link; printf '\\xff' > latin; printf x > $'\\xfe'
"""
    repair = make_repair(plan(("calc.sh", work)))
    await repair.start(project)
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    after = git_applied(project, state["diff"], tmp_path)
    wanted = project | {"calc.sh": MENDED, "new.txt": "no newline", "empty": "", "tool": "#!/bin/sh\n"}
    wanted['d e/qu"ote\\ä\ttab'] = wanted.pop("old name")
    del wanted["gone.txt"]
    wanted |= {"data.bin": "a\0b", "latin": "\udcff", "\udcfe": "x"}
    assert after == wanted
    executable = {path for path in after if (tmp_path / path).stat().st_mode & 0o100}
    assert executable == {"plain", "tool"}  # `run` is as it was written here; the patch has no word on it
    assert state["left_out"] == {"link": "it is, or was, a link"}
    assert "Changed, but not in the patch: " in state["summary"]


async def test_state_is_plain_and_small_after_every_node(make_repair: MakeRepair) -> None:
    """Strictly serialisable, no bytes, no handle; a few kilobytes beside the project and the patch."""
    repair = make_repair(plan(ADD), plan(DOUBLE))
    await repair.start()
    await repair.answer(APPROVE)
    await repair.answer(APPROVE)
    serde = JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)
    seen = set()
    async for snapshot in repair.graph.aget_state_history(repair.config):
        values = {name: value for name, value in snapshot.values.items() if name != "messages"}
        ormsgpack.packb(values)
        assert len(json.dumps(values)) < 12_000
        kind, data = serde.dumps_typed(snapshot.values)
        assert kind == "msgpack"
        assert serde.loads_typed((kind, data)) == snapshot.values
        seen |= set(snapshot.next)
    assert seen == {"__start__", "bootstrap", "plan", "approve", "execute", "verify", "summarize"}


async def test_files_that_no_patch_holds_are_there_where_the_client_sent_them(
    make_repair: MakeRepair,
) -> None:
    """Dependencies that are part of what was sent: in both sandboxes, and not in the patch."""
    project = CALC | {"node_modules/run.sh": CALC["tests/run.sh"], "tests/run.sh": ". node_modules/run.sh\n"}
    project["node_modules/.package-lock.json"] = "{}"
    change = ("node_modules/run.sh", "echo >> node_modules/run.sh")
    repair = make_repair(plan(ADD, DOUBLE, change))
    state = await repair.start(project)
    assert state["tests_before"]["output"] == "FAIL add\nFAIL double\n"
    state = await repair.answer(APPROVE)
    assert (state["status"], set(state["changes"])) == ("passed", {"calc.sh"})


async def test_green_project_needs_no_plan(make_repair: MakeRepair, sandboxes: E2BLocal) -> None:
    """Tests that pass already end the run at once, and it says so."""
    repair = make_repair(plan(ADD))
    state = await repair.start({"a": "x"}, test_command="grep -q x a")
    assert (state["status"], state["plan"], state["diff"]) == ("already_green", {}, "")
    assert state["summary"].startswith("The tests pass already; there was nothing to repair.")
    assert repair.mind.asked == []
    assert await alive(sandboxes, thread=repair.thread_id) == []


async def test_failing_setup_is_its_own_outcome(make_repair: MakeRepair, sandboxes: E2BLocal) -> None:
    """A set-up command that fails is no failing test: the run ends with what it printed."""
    repair = make_repair(plan(ADD))
    state = await repair.start(setup_command="echo no such index >&2; exit 9")
    assert (state["status"], state["tests_before"]) == ("setup_failed", {})
    assert "exit_code: 9" in state["summary"]
    assert "no such index" in state["summary"]
    assert await alive(sandboxes, thread=repair.thread_id) == []


async def test_tests_that_do_not_end_are_red_with_their_reason(make_repair: MakeRepair) -> None:
    """A timeout is no exit code: it is told as what it is, to the planner too."""
    repair = make_repair(plan(("a", "echo > a")), command_timeout_s=1)
    state = await repair.start({"a": "x"}, test_command="sleep 30", limits={"tries": 1})
    assert (state["tests_before"]["exit_code"], state["tests_before"]["timed_out"]) == (None, True)
    assert "did not end within their limit" in repair.mind.asked[0]
    state = await repair.answer(APPROVE)
    assert state["status"] == "failed"
    assert "did not end within their limit" in state["summary"]
