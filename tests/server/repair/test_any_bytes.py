"""Files that are no UTF-8 text come in an archive, are repaired, and go back byte for byte."""

from pathlib import Path

import pytest

from agent.repair.changes import key_of, path_of
from agent.settings import Settings
from server.repair.conftest import MakeRepair
from server.repair.test_archives import in_the_sandbox, uploaded
from support.e2b_process import E2BLocal
from support.repairs import ADD, APPROVE, DOUBLE, TEST_COMMAND, git_applied_bytes, packed, plan, quoted

CALC = {
    "calc.sh": b"# caf\xe9\nadd() { echo $(($1 - $2)); }\ndouble() { echo $(($1 + $1 + 1)); }\n",
    "tests/run.sh": b'. ./calc.sh\n[ "$(add 2 3)" = 5 ] && [ "$(double 4)" = 8 ]\n',
}
FILES = {
    "utf16.txt": "x = 'é'\n".encode("utf-16"),
    "nul.bin": b"a\0b\r\n",
    "bom.txt": b"\xef\xbb\xbfx\r\n",
    "empty": b"",
    "caf\udce9/\udcff.txt": b"\xff",
    '"quoted"\\.txt': b"x",
    "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
}


async def test_any_bytes_are_patched_and_applied(
    make_repair: MakeRepair, settings: Settings, sandboxes: E2BLocal, tmp_path: Path
) -> None:
    """Changed, deleted, added, put back after a loss: in names and contents."""
    project = CALC | FILES
    first = "printf '\\377\\000new' > $'\\376'; rm nul.bin; for f in utf16.txt bom.txt empty pointer"
    first += " '\"quoted\"\\.txt' $'caf\\351/\\377.txt'; do printf '\\r\\n\\351' >> \"$f\"; done"
    repair = make_repair(plan(("calc.sh", first)), plan(ADD, DOUBLE))
    await uploaded(settings, repair, packed(project))
    await repair.run({"test_command": TEST_COMMAND})
    assert "# café\nadd() {" in repair.mind.asked[0]  # the planner reads it
    state = await repair.answer(APPROVE)
    assert (state["status"], state["left_out"]) == (None, {})
    # A step that was cut short, in what is made right before the next.
    damage = "cd project; rm $'\\376' utf16.txt; echo > $'caf\\351/\\377.txt'; echo > nul.bin; echo > calc.sh"
    await in_the_sandbox(sandboxes, repair, f"bash -c {quoted(damage)}")
    state = await repair.answer(APPROVE)
    assert (state["status"], state["left_out"]) == ("passed", {})
    wanted = {name: data + b"\r\n\xe9" for name, data in FILES.items() if name != "nul.bin"}
    wanted["\udcfe"] = b"\xff\0new"
    wanted |= {"tests/run.sh": CALC["tests/run.sh"]}
    wanted["calc.sh"] = CALC["calc.sh"].replace(b"1 - ", b"1 + ").replace(b" + 1)", b")")
    assert git_applied_bytes(project, state["diff"], tmp_path) == wanted
    assert "# The change above, of calc.sh as latin-1 text:\n" in state["diff"]
    assert "# +add() { echo $(($1 + $2)); }\n" in state["diff"]


@pytest.mark.parametrize("name", ["a", "é", '"', "\\", "\udcff", 'a"\\\udc80é', "a\\377", '"a"'])
def test_name_in_state_is_text_and_stands_for_one_path(name: str) -> None:
    """Also one that looks like another's escapes."""
    key = key_of(name)
    key.encode()
    assert path_of(key) == name
    assert (key == name) or key.startswith('"')
