"""What belongs to a project is what git says, in the patch as in what was sent; the rest is named."""

from pathlib import Path

import pytest

from agent.errors import SandboxError
from agent.settings import Settings
from server.repair.conftest import MakeRepair
from server.repair.test_archives import in_the_sandbox, uploaded
from support.e2b_process import E2BLocal
from support.repairs import ADD, APPROVE, CALC, DOUBLE, TEST_COMMAND, git_applied, packed, plan

GREEN = (ADD[0], f"{ADD[1]}; {DOUBLE[1]}")
RULES = {".gitignore": "*.log\nbuild/\n!kept.log\n", "web/.gitignore": "/out\n"}


async def test_new_files_that_git_ignores_are_not_in_the_patch_and_are_named(
    make_repair: MakeRepair, tmp_path: Path
) -> None:
    """By the rules of the project's root and of its folders, with the exceptions that they make."""
    wrote = (
        "mkdir -p build a/build web out; echo > build/x; echo > a/build/y; echo > debug.log; "
        "echo > a/kept.log; echo > web/out; echo > out/kept; "
        "echo > ':(exclude)c.sh'; echo > $'new\\nline.log'"
    )
    repair = make_repair(plan((GREEN[0], f"{GREEN[1]}; {wrote}")))
    await repair.start(CALC | RULES)
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    assert set(state["changes"]) == {"calc.sh", "a/kept.log", "out/kept", ":(exclude)c.sh"}
    named = ("a/build/", "build/", "debug.log", "new\nline.log", "web/out")
    assert state["left_out"] == dict.fromkeys(named, "git ignores it")
    assert "Changed, but not in the patch: a/build/ (git ignores it), build/" in state["summary"]
    mine = {"debug.log": "mine", "build/x": "mine"}
    after = git_applied(CALC | RULES | mine, state["diff"], tmp_path)
    assert {name: after[name] for name in mine} == mine


async def test_tests_that_need_an_ignored_file_are_red_and_the_next_plan_is_told(
    make_repair: MakeRepair,
) -> None:
    """Where the patch is applied the file would not be either."""
    project = CALC | {".gitignore": "build/\n", "calc.sh": ". ./build/calc.sh\n"}
    mended = "mkdir build; echo 'add() { echo 5; }; double() { echo 8; }' > build/calc.sh"
    repair = make_repair(plan(("build/calc.sh", mended)))
    await repair.start(project)
    state = await repair.answer(APPROVE)
    assert (state["status"], state["changes"]) == (None, {})
    assert state["warnings"][-1].endswith("What the steps left besides was not in it: build/.")
    assert "has the changed files alone, and not these: build/." in repair.mind.asked[1]


async def test_files_that_were_sent_are_compared_whatever_names_and_rules_say(
    make_repair: MakeRepair, tmp_path: Path
) -> None:
    """As git does with what it tracks: packages named like dependencies, and files that are ignored."""
    folders = ("venv", "node_modules", ".venv", "build", "dist", "src/venv")
    project = CALC | {f"{folder}/a.txt": "1\n" for folder in folders}
    project |= {".gitignore": "/build/\n*.log\n", "tracked.log": "1\n", "gone.log": "1\n"}
    work = "rm gone.log; echo 2 > tracked.log; mkdir -p lib/venv; echo > lib/venv/c; "
    work += f"for d in {' '.join(folders)}; do echo 2 > $d/a.txt; echo 3 > $d/b.txt; done"
    repair = make_repair(plan((GREEN[0], f"{GREEN[1]}; {work}")))
    await repair.start(project)
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    after = git_applied(project, state["diff"], tmp_path)
    changed = {f"{folder}/a.txt": "2\n" for folder in folders} | {"tracked.log": "2\n"}
    new = {f"{folder}/b.txt": "3\n" for folder in folders if folder != "build"}
    assert {k: v for k, v in after.items() if project.get(k) != v and k != "calc.sh"} == changed | new
    assert "gone.log" not in after
    assert state["left_out"] == {
        "build/b.txt": "git ignores it",
        "lib/venv/": "dependencies, version control or compiled code",
    }


async def test_archive_is_compared_as_it_was_sent(
    make_repair: MakeRepair, settings: Settings, sandboxes: E2BLocal
) -> None:
    """A package named venv is the project's; installed dependencies and git's own folder are not."""
    project = CALC | {
        "venv/a.txt": "1\n",
        "node_modules/.package-lock.json": "{}",
        "node_modules/x/index.js": "1\n",
        ".git/config": "[core]\n",
    }
    work = "for f in venv/a.txt node_modules/x/index.js .git/config; do echo 2 >> $f; done"
    repair = make_repair(plan(ADD, ("venv/a.txt", work), DOUBLE))
    await uploaded(settings, repair, packed({name: text.encode() for name, text in project.items()}))
    await repair.run({"test_command": TEST_COMMAND})
    await in_the_sandbox(sandboxes, repair, "echo stale > project/venv/a.txt")
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    assert state["changes"]["venv/a.txt"] == "1\n2\n"
    assert set(state["changes"]) == {"calc.sh", "venv/a.txt"}
    assert set(state["left_out"]) == {".git/", "node_modules/"}


async def test_protected_file_in_a_package_named_like_dependencies_is_put_back(
    make_repair: MakeRepair,
) -> None:
    """A test is no less one where a list of folders has its folder's name."""
    project = {"calc.sh": CALC["calc.sh"], "venv/tests/run.sh": CALC["tests/run.sh"]}
    cheat = ("calc.sh", "echo exit 0 > venv/tests/run.sh")
    repair = make_repair(plan(cheat))
    await repair.start(project, test_command="bash venv/tests/run.sh", limits={"tries": 1})
    state = await repair.answer(APPROVE)
    assert (state["status"], state["changed_tests"]) == ("failed", ["venv/tests/run.sh"])


@pytest.mark.parametrize("rules", ["*\n", "*.log\n"])
async def test_rules_that_a_step_writes_count_from_then_on(make_repair: MakeRepair, rules: str) -> None:
    """As in the folder that the patch is applied to; what was sent stays the project's."""
    first = ("calc.sh", f"{ADD[1]}; echo > a.log; echo > b.txt")
    second = ("calc.sh", f"{DOUBLE[1]}; printf {rules!r} > .gitignore")
    repair = make_repair(plan(first, second))
    await repair.start()
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    assert set(state["changes"]) == {"calc.sh"} | ({".gitignore", "b.txt"} if rules == "*.log\n" else set())


async def test_patch_with_an_exception_that_an_ignored_file_makes_is_applied_all_the_same(
    make_repair: MakeRepair,
) -> None:
    """The rule that let a file in is not where the patch is verified."""
    project = CALC | {".gitignore": "*.log\n.gitignore\n", "a/x": "x\n"}
    wrote = "echo '!kept.log' > a/.gitignore; echo > a/kept.log"
    repair = make_repair(plan((GREEN[0], f"{GREEN[1]}; {wrote}")))
    await repair.start(project)
    state = await repair.answer(APPROVE)
    assert (state["status"], set(state["changes"])) == ("passed", {"calc.sh", "a/kept.log"})
    assert state["left_out"] == {"a/.gitignore": "git ignores it"}


async def test_sandbox_without_git_is_said(make_repair: MakeRepair) -> None:
    """What cannot be told is no reason to leave a file out, and is not passed over in silence."""
    lose = (
        "mkdir ~/bin; ln -s /usr/bin/* /bin/* ~/bin 2>&-; rm ~/bin/git; echo 'PATH=~/bin' >> ~/.bash_profile"
    )
    repair = make_repair(plan(("calc.sh", f"{GREEN[1]}; echo > a.log; {lose}")))
    await repair.start(CALC | RULES)
    state = await repair.answer(APPROVE)
    assert (state["status"], set(state["changes"])) == ("passed", {"a.log", "calc.sh"})
    assert state["warnings"][0].startswith("The sandbox has no git: ")


async def test_git_that_cannot_tell_is_an_error(make_repair: MakeRepair) -> None:
    """A check that fails lets nothing through."""
    lie = "mkdir ~/bin; printf '#!/bin/sh\\nexit 3\\n' > ~/bin/git; chmod +x ~/bin/git"
    repair = make_repair(plan(("a", f"{lie}; echo 'PATH=~/bin:$PATH' >> ~/.bash_profile; echo > a.log")))
    await repair.start(CALC | RULES)
    with pytest.raises(SandboxError, match="could not be worked on"):
        await repair.answer(APPROVE)


async def test_what_the_set_up_left_stays_out_though_a_step_takes_the_rule_away(
    make_repair: MakeRepair,
) -> None:
    """It is no part of the repair; what the steps write from then on is."""
    step = (GREEN[0], f"{GREEN[1]}; rm .gitignore; echo > b.log")
    repair = make_repair(plan(step))
    await repair.start(
        CALC | {".gitignore": RULES[".gitignore"]}, setup_command="mkdir build; echo > build/x"
    )
    state = await repair.answer(APPROVE)
    assert (state["status"], state["left_out"]) == ("passed", {})
    assert set(state["changes"]) == {".gitignore", "b.log", "calc.sh"}


async def test_file_that_is_too_large_for_a_patch_takes_no_room_from_others(make_repair: MakeRepair) -> None:
    """It is left out by itself, and named."""
    step = (GREEN[0], f"{GREEN[1]}; yes | head -c 3000000 > a.txt; ln -s a.txt b; echo > z.txt")
    repair = make_repair(plan(step))
    await repair.start()
    state = await repair.answer(APPROVE)
    assert (state["status"], set(state["changes"])) == ("passed", {"calc.sh", "z.txt"})
    assert state["left_out"] == {"a.txt": "it has more than 500000 bytes", "b": "it is, or was, a link"}


async def test_repository_that_a_step_makes_is_no_part_of_the_patch(make_repair: MakeRepair) -> None:
    """Nor does it decide what is: its index may hold anything."""
    wrote = "git init -q; git add -Af; echo > new.txt; echo > new.log; git init -q sub; echo > sub/x.log"
    repair = make_repair(plan((GREEN[0], f"{GREEN[1]}; {wrote}; git add -Af")))
    await repair.start(CALC | RULES)
    state = await repair.answer(APPROVE)
    assert (state["status"], set(state["changes"])) == ("passed", {"calc.sh", "new.txt"})
    assert set(state["left_out"]) == {".git/", "new.log", "sub/.git/", "sub/"}
