"""The one dialect of globs, for the tools that search and for what a repair protects."""

from pathlib import Path

import pytest

from agent.globs import matches
from agent.repair import tree
from agent.sandbox.e2b.inside.search import files_below, find
from support.steps import steps_of

FILES = [
    "a.py", "src/a.py", "src/deep/a.py", "src/b.txt", "tests/a.py", "src/tests/b.py", "x/src/c.py",
    "na[me.py", "new\nline.py", ".hidden/a.py", "src/deep/er/d.py",
]  # fmt: skip
CASES = [
    ("*.py", [file for file in FILES if file.endswith(".py")]),
    ("a.py", ["a.py", "src/a.py", "src/deep/a.py", "tests/a.py", ".hidden/a.py"]),
    ("/a.py", ["a.py"]),
    ("./a.py", ["a.py"]),
    ("/tests/", ["tests/a.py"]),
    ("src/*.py", ["src/a.py"]),
    ("./src/*.py", ["src/a.py"]),
    ("src/**", ["src/a.py", "src/deep/a.py", "src/b.txt", "src/tests/b.py", "src/deep/er/d.py"]),
    ("src/**/*.py", ["src/a.py", "src/deep/a.py", "src/tests/b.py", "src/deep/er/d.py"]),
    ("src/**/**/d.py", ["src/deep/er/d.py"]),
    ("**/src/*.py", ["src/a.py", "x/src/c.py"]),
    ("tests/", ["tests/a.py", "src/tests/b.py"]),
    ("src/deep/", ["src/deep/a.py", "src/deep/er/d.py"]),
    ("**/tests/**", ["tests/a.py", "src/tests/b.py"]),
    ("*/a.py", ["src/a.py", "tests/a.py", ".hidden/a.py"]),
    ("src/[!a]*.py", []),
    ("src/[^b].py", ["src/a.py"]),
    ("na[[]me.py", ["na[me.py"]),
    ("src/?.txt", ["src/b.txt"]),
    ("sr**c/a.py", ["src/a.py"]),
    ("**", FILES),
    ("new*", ["new\nline.py"]),
    ("", []),
]


@pytest.mark.parametrize(("pattern", "found"), CASES)
def test_globs_mean_the_same_to_tools_and_to_protection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, found: list[str]
) -> None:
    """The files that `glob` finds, `grep` searches and `protect` holds are the same ones."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    assert [file for file in FILES if tree.matches(file, [pattern])] == found
    answer = find(str(tmp_path), str(tmp_path), pattern, 100)
    assert sorted(e["path"] for e in answer["entries"] if e["kind"] == "file") == sorted(found)
    searched = files_below(str(tmp_path), pattern, []) if pattern else []
    assert sorted(name for name, _ in searched) == sorted(found)


def test_globs_take_steps_as_path_and_pattern_grow() -> None:
    """Of dozens of `**` and stars none is tried against each way to share a path out."""
    path = "/".join(["a"] * 200)
    hostile = "/".join(["**", "a"] * 20) + "/b"

    def steps(times: int) -> int:
        return steps_of(lambda: matches("/".join([path] * times), [hostile]))

    assert steps(2) < 2.5 * steps(1)
    assert not matches("a" * 250, ["*a" * 60 + "b"])
