"""What an agent leaves behind turns no test green: only what the patch holds does."""

import pytest

from agent.context import Context
from server.repair.conftest import MakeRepair
from support.alive import alive
from support.e2b_process import E2BLocal
from support.repairs import ADD, APPROVE, CALC, DOUBLE, plan, quoted

PYTHON = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
}
PYTEST = "python -m pytest -q"
COMMENT = "echo '# looked at' >> calc.py"

FAKE_PYTEST_PYC = f"""
{COMMENT}
echo 'import sys; print("1 passed in 0.01s"); sys.exit(0)' > pytest.py
python -c 'import py_compile; py_compile.compile("pytest.py", "pytest.pyc")'
rm pytest.py"""
BACKGROUND = f"""
{COMMENT}
cp calc.py /tmp/good.py; sed -i 's/a - b/a + b/' /tmp/good.py; cp calc.py /tmp/bad.py
nohup bash -c '
while :; do
  if pgrep -f "[m] pytest" > /dev/null; then cp /tmp/good.py calc.py; else cp /tmp/bad.py calc.py; fi
  sleep 0.02
done' > /dev/null 2>&1 &
disown"""
PROFILE = f"""
{COMMENT}
mkdir -p ~/.local/bin
printf '#!/bin/sh\\necho 1 passed in 0.01s\\nexit 0\\n' > ~/.local/bin/python
chmod +x ~/.local/bin/python
cat >> ~/.bash_profile <<'END'
export PATH=$HOME/.local/bin:$PATH
find() {{ command find "$@" | grep -zv 'bash_profile\\|\\.local'; true; }}
export -f find
END"""
SITE = f"""
{COMMENT}
site=$(python -c 'import site; print(site.getusersitepackages())')
mkdir -p "$site"
echo 'import os, sys; "pytest" in " ".join(sys.orig_argv) and os._exit(0)' > "$site/sitecustomize.py"
cp "$site/sitecustomize.py" "$site/usercustomize.py"
echo 'import os, sys; "pytest" in " ".join(sys.orig_argv) and os._exit(0)' > "$site/always.pth" """


@pytest.mark.parametrize(
    "cheat",
    [FAKE_PYTEST_PYC, BACKGROUND, PROFILE, SITE],
    ids=["compiled", "background", "profile", "site"],
)
async def test_what_a_step_leaves_behind_turns_no_test_green(
    make_repair: MakeRepair, sandboxes: E2BLocal, cheat: str
) -> None:
    """A comment in the patch, and beside it what would have made the tests pass: red, and nothing is left."""
    repair = make_repair(plan(("calc.py", cheat)))
    await repair.start(PYTHON, test_command=PYTEST, limits={"tries": 1})
    state = await repair.answer(APPROVE)
    assert state["status"] == "failed"
    assert state["tests_after"]["failing"] == ["tests/test_calc.py::test_add"]
    assert await alive(sandboxes, thread=repair.thread_id) == []


async def test_red_names_what_the_steps_left_beside_the_patch(make_repair: MakeRepair) -> None:
    """Whoever reads the result, and the next plan, are told what made the difference."""
    leave = (
        "mkdir -p .venv/lib; echo > .venv/lib/fix.py; echo > x.pyc; mkdir __pycache__; echo > __pycache__/a"
    )
    repair = make_repair(plan(("calc.sh", f"{leave}; echo > ~/stray")))
    await repair.start()
    state = await repair.answer(APPROVE)
    assert state["warnings"] == [
        "Try 1: the tests failed in a sandbox with the patch alone. "
        "What the steps left besides was not in it: .venv/, x.pyc."
    ]
    told = "The tests ran in a sandbox that has the changed files alone, and not these: .venv/, x.pyc, stray."
    assert told in repair.mind.asked[1]


async def test_links_and_what_lies_behind_them_turn_no_test_green(make_repair: MakeRepair) -> None:
    """A folder of the project replaced by a link to a mended one elsewhere: the patch holds no link."""
    project = {
        "lib/calc.sh": CALC["calc.sh"],
        "tests/run.sh": CALC["tests/run.sh"].replace("calc", "lib/calc"),
    }
    mended = "sed -i 's/1 - /1 + /; s/ + 1)/)/' lib/calc.sh; mv lib /tmp/lib; ln -s /tmp/lib lib"
    repair = make_repair(plan(("lib/calc.sh", mended)))
    await repair.start(project, limits={"tries": 1})
    state = await repair.answer(APPROVE)
    assert (state["status"], state["left_out"]) == ("failed", {"lib": "it is, or was, a link"})
    assert "deleted file mode" in state["diff"]


async def test_forged_list_of_files_puts_no_test_into_the_patch(make_repair: MakeRepair) -> None:
    """A `find` of the step's own shows the tests as they were, until they have been put back."""
    cheat = """
mkdir -p ~/bin; cp tests/run.sh ~/run.sh
cat > ~/bin/find <<'END'
#!/bin/bash
case "$*" in *-exec*) touch ~/over ;; esac
if [ -e ~/over ]; then echo exit 0 > tests/run.sh; else cp ~/run.sh tests/run.sh; fi
exec /usr/bin/find "$@"
END
chmod +x ~/bin/find; echo 'export PATH=~/bin:$PATH' >> ~/.bash_profile; echo exit 0 > tests/run.sh"""
    repair = make_repair(plan(("calc.sh", cheat)))
    await repair.start(limits={"tries": 1})
    state = await repair.answer(APPROVE)
    assert state["status"] == "failed"
    assert (state["changes"], state["diff"]) == ({}, "")


async def test_report_written_by_a_program_left_running_is_not_read(make_repair: MakeRepair) -> None:
    """The counts are those of the sandbox that verified; there nobody forged one."""
    forged = "<testsuite><testcase name='a'/><testcase name='b'/></testsuite>"
    loop = f'while :; do echo "{forged}" > ~/.repair/junit.xml; sleep 0.01; done'
    cheat = f"nohup bash -c {quoted(loop)} > /dev/null 2>&1 & disown"
    repair = make_repair(plan(ADD, ("calc.sh", cheat), DOUBLE))
    await repair.start()
    state = await repair.answer(APPROVE)
    assert (state["status"], state["tests_after"]["passed"]) == ("passed", None)


async def test_what_an_earlier_run_left_makes_no_project_green_already(
    make_repair: MakeRepair, sandboxes: E2BLocal
) -> None:
    """A kept sandbox is worked in again: tests that pass in it at once are run where nobody has worked."""
    repair = make_repair(plan(("calc.sh", "echo 'bash() { true; }; export -f bash' > ~/.bash_profile")))
    repair.context = Context(keep="thread")
    await repair.start(limits={"tries": 1})
    assert (await repair.answer(APPROVE))["status"] == "failed"
    state = await repair.start()
    assert (state["status"], state["tests_before"]["output"]) == (None, "FAIL add\nFAIL double\n")
    assert len(await alive(sandboxes, thread=repair.thread_id)) == 1
