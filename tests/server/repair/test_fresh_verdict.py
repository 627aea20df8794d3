"""What an agent leaves behind turns no test green: only what the patch holds does."""

import pytest

from server.repair.conftest import MakeRepair
from support.alive import alive
from support.e2b_process import E2BLocal
from support.repairs import APPROVE, plan

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
