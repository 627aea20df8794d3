"""The unified diff: git takes it, whatever the texts are."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.repair.diff import news, unified_diff

TEXT = st.text(alphabet=st.sampled_from("ab \n\t\f\x1c\u2028é-+@\\"), max_size=30)
TREE = st.dictionaries(
    st.sampled_from(["a.py", "d/b.txt", "with space.md", "é.txt", 'q"\\\t\n']), TEXT, max_size=4
)


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


def test_diff_of_equal_trees_is_empty() -> None:
    """Nothing changed is an empty text."""
    assert unified_diff({"a": "x"}, {"a": "x"}) == ""


def test_diff_carries_modes_over_git(tmp_path: Path) -> None:
    """A file that becomes executable, one that ceases to be, a new one that is."""
    before = {"on": "x\n", "off": "x\n", "same": "x\n"}
    diff = unified_diff(
        before,
        before | {"off": "y\n", "new": "z"},
        executable_before=["off", "same"],
        executable_after=["on", "new", "same"],
    )
    for path in before:
        (tmp_path / path).write_text(before[path])
    (tmp_path / "off").chmod(0o755)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff.encode(), check=True)
    assert {path.name for path in tmp_path.iterdir() if path.stat().st_mode & 0o100} == {"on", "new"}
    assert (tmp_path / "off").read_text() == "y\n"


def test_diff_of_a_very_long_file_is_whole_lines(tmp_path: Path) -> None:
    """Where comparing line by line would take too long, all lines are exchanged; git takes that too."""
    before, after = {"a": "x\n" * 30_000}, {"a": "x\n" * 29_999 + "y"}
    assert applied(before, unified_diff(before, after), tmp_path / "work") == after


def test_news_are_the_files_that_were_not_so_before() -> None:
    """A step's own diff: what the whole has now and did not have."""
    one = unified_diff({"a": "x\n", "b": "x\n"}, {"a": "y\n", "b": "x\n"})
    two = unified_diff({"a": "x\n", "b": "x\n"}, {"a": "y\n", "b": "diff --git z\n"})
    assert news("", one) == one
    assert news(one, two).startswith("diff --git a/b b/b\n")
    assert "a/a" not in news(one, two)
    assert news(two, two) == ""
