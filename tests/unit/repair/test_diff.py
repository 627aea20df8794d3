"""The unified diff: git takes it, whatever the texts are."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.repair.diff import unified_diff
from agent.repair.project import changes, patched

TEXT = st.text(alphabet=st.sampled_from("ab \n\t\f\x1c\u2028é-+@\\"), max_size=30)
TREE = st.dictionaries(st.sampled_from(["a.py", "d/b.txt", "with space.md", "é.txt"]), TEXT, max_size=4)


def applied(before: dict[str, str], diff: str, folder: Path) -> dict[str, str]:
    """Return the files after `git apply` of the diff to `before`, in a new folder."""
    folder.mkdir(parents=True)
    for path, text in before.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(text.encode())
    if diff:
        subprocess.run(["git", "apply", "-"], cwd=folder, input=diff.encode(), check=True)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes().decode() for path in files}


@given(before=TREE, after=TREE)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_diff_applied_by_git_gives_the_new_tree(
    before: dict[str, str], after: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """New, deleted, empty and changed files, odd line ends and no newline at the end: all arrive."""
    folder = tmp_path_factory.mktemp("tree") / "work"
    assert applied(before, unified_diff(before, after), folder) == after


@given(before=TREE, after=TREE)
def test_changes_patched_on_give_the_new_tree(before: dict[str, str], after: dict[str, str]) -> None:
    """What state keeps of the repair is enough to make the tree again."""
    assert patched(before, changes(before, after)) == after


def test_diff_of_equal_trees_is_empty() -> None:
    """Nothing changed is an empty text."""
    assert unified_diff({"a": "x"}, {"a": "x"}) == ""
