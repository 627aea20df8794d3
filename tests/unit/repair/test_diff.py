"""The unified diff: git takes it, whatever the texts are."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.repair.diff import news, unified_diff

TEXT = st.text(alphabet=st.sampled_from("ab \n\r\t\f\x1c\u2028é\ufeff-+@\\"), max_size=30)
DATA = st.one_of(TEXT.map(str.encode), TEXT.map(lambda text: text.encode("utf-16")), st.binary(max_size=200))
NAMES = ["a.py", "d/b.txt", "with space.md", "é.txt", 'q"\\\t\n', "caf\udce9.py"]
TREE = st.dictionaries(st.sampled_from(NAMES), DATA, max_size=5)
Files = dict[str, bytes]


def applied(before: Files, diff: str, folder: Path, *options: str) -> Files:
    """Return the files after `git apply` of the diff to `before`, in a new folder."""
    folder.mkdir(parents=True)
    for path, data in before.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(data)
    if diff:
        subprocess.run(["git", "apply", *options, "-"], cwd=folder, input=diff.encode(), check=True)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@given(before=TREE, after=TREE)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_diff_applied_by_git_gives_the_new_tree(
    before: Files, after: Files, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """New, deleted, empty and changed files, any bytes in names and contents: all arrive, and go back."""
    folder, diff = tmp_path_factory.mktemp("tree"), unified_diff(before, after)
    assert applied(before, diff, folder / "work") == after
    assert applied(after, diff, folder / "back", "--reverse") == before


def test_diff_of_equal_trees_is_empty() -> None:
    """Nothing changed is an empty text."""
    assert unified_diff({"a": b"x\xff"}, {"a": b"x\xff"}) == ""


def test_diff_carries_modes_over_git(tmp_path: Path) -> None:
    """A file that becomes executable, one that ceases to be, a new one that is."""
    before = {"on": b"x\xff\n", "off": b"x\n", "same": b"x\n", "both": b"\xff"}
    diff = unified_diff(
        before,
        before | {"off": b"y\n", "new": b"\xff", "both": b"\xfe"},
        executable_before=["off", "same", "both"],
        executable_after=["on", "new", "same"],
    )
    for path in before:
        (tmp_path / path).write_bytes(before[path])
    (tmp_path / "off").chmod(0o755)
    (tmp_path / "both").chmod(0o755)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff.encode(), check=True)
    assert {path.name for path in tmp_path.iterdir() if path.stat().st_mode & 0o100} == {"on", "new"}
    assert (tmp_path / "off").read_text() == "y\n"


def test_diff_of_a_very_long_file_is_whole_lines(tmp_path: Path) -> None:
    """Where comparing line by line would take too long, all lines are exchanged; git takes that too."""
    before, after = {"a": b"x\n" * 30_000}, {"a": b"x\n" * 29_999 + b"y"}
    assert applied(before, unified_diff(before, after), tmp_path / "work") == after


def test_news_are_the_files_that_were_not_so_before() -> None:
    """A step's own diff: what the whole has now and did not have."""
    one = unified_diff({"a": b"x\n", "b": b"x\xff"}, {"a": b"y\n", "b": b"x\xff"})
    two = unified_diff({"a": b"x\n", "b": b"x\xff"}, {"a": b"y\n", "b": b"diff --git \xff\n"})
    assert news("", one) == one
    assert news(one, two).startswith("diff --git a/b b/b\n")
    assert "a/a" not in news(one, two)
    assert news(two, two) == ""


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_change_of_a_text_in_another_encoding_is_there_to_be_read(encoding: str, tmp_path: Path) -> None:
    """Below the bytes that git takes, as comments; whoever reviews a patch sees what it does."""
    before, after = ({"a.py": f"x = 'é'\n{line}\n".encode(encoding)} for line in ("y = 1", "y = 2"))
    diff = unified_diff(before, after)
    assert f"# The change above, of a.py as {encoding} text:\n# --- a.py\n" in diff
    assert "#  x = 'é'\n# -y = 1\n# +y = 2\n" in diff
    assert applied(before, diff, tmp_path / "work") == after
