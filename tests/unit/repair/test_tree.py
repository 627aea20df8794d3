"""Trees of files: what is read of a listing, what differs, what is protected."""

import subprocess
from pathlib import Path

import pytest

from agent.errors import SandboxError
from agent.repair.tree import (
    IGNORED_FOLDERS,
    PROTECTED,
    differing,
    ignored,
    listing_command,
    matches,
    parsed,
    printable,
    text_entry,
    tree_of,
)


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_a.py",
        "tests/data/x.json",
        "test_a.py",
        "pkg/test_a.py",
        "conftest.py",
        "a_test.py",
        "pkg/a_test.go",
        "src/a.test.tsx",
        "src/__tests__/a.js",
        "spec/a_spec.rb",
        "src/test/java/ATest.java",
        "run/test.sh",
    ],
)
def test_protected_globs_know_tests(path: str) -> None:
    """Tests and what configures them, in the usual places of many languages."""
    assert matches(path, PROTECTED)


@pytest.mark.parametrize(
    "path", ["app.py", "src/contest.py", "latest.py", "attest/x.py", "specs.md", "testing/a"]
)
def test_protected_globs_leave_code(path: str) -> None:
    """Code is what a repair changes."""
    assert not matches(path, PROTECTED)


def test_matches_keeps_a_star_within_a_name() -> None:
    """Two stars are any folders, one star none."""
    assert matches("a/b.py", ["*/b.py"])
    assert not matches("a/b/c.py", ["a/*.py"])
    assert matches("a/b/c.py", ["a/**"])
    assert not matches("a", ["a/**"])
    assert matches("c.py", ["**/c.py"])


def test_listing_is_read_whatever_files_are_named(tmp_path: Path) -> None:
    """Modes, links, names with newlines and quotes, names that are no text; caches are passed over."""
    (tmp_path / "d").mkdir()
    (tmp_path / 'd/we"ird\n name').write_text("x")
    (tmp_path / "run").write_text("#!/bin/sh\n")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "empty").touch()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/x").write_text("x")
    (tmp_path / "a.pyc").write_text("x")
    Path(f"{tmp_path}/\udcff").write_text("x")
    listing = tmp_path.parent / "listing"
    subprocess.run(["bash", "-c", listing_command(str(listing))], cwd=tmp_path, check=True)
    found = parsed(listing.read_bytes())
    assert found.pop("link").link
    assert found == {
        'd/we"ird\n name': text_entry("x"),
        "run": text_entry("#!/bin/sh\n", executable=True),
        "empty": text_entry(""),
        "\udcff": text_entry("x"),
    }
    assert printable("\udcff") == "\\xff"


def test_listing_of_an_empty_folder_is_an_empty_tree(tmp_path: Path) -> None:
    """Nothing there is no error."""
    listing = tmp_path.parent / "listing"
    subprocess.run(["bash", "-c", listing_command(str(listing))], cwd=tmp_path, check=True)
    assert parsed(listing.read_bytes()) == {}


def test_differing_names_what_was_changed_added_and_deleted() -> None:
    """Also a file of the same text whose mode is another."""
    before = tree_of({"same": "x", "text": "x", "gone": "x", "mode": "x"})
    after = tree_of({"same": "x", "text": "y", "new": "x"}) | {"mode": text_entry("x", executable=True)}
    assert differing(before, after) == ["gone", "mode", "new", "text"]


@pytest.mark.parametrize("folder", IGNORED_FOLDERS)
def test_ignored_folders_are_ignored_at_any_depth(folder: str) -> None:
    """As the listing does."""
    assert ignored(f"a/{folder}/b")
    assert not ignored(f"a/{folder}")
    assert tree_of({f"{folder}/x": "y", "z": ""}) == tree_of({"z": ""})


@pytest.mark.parametrize("name", ["../.bash_profile", "/etc/passwd", "a//b", "a/../../b", "."])
def test_list_that_leads_out_of_the_project_is_refused(name: str) -> None:
    """It is written where an agent works: what it names would be written elsewhere, too."""
    with pytest.raises(SandboxError, match="forged"):
        parsed(f"\0f 644 1\0./{name}\0\0".encode())


@pytest.mark.parametrize("about", ["", "f 644", "f rw- 1", "f 644 x", f"f 644 {'9' * 5000}"])
def test_list_that_no_command_wrote_is_refused(about: str) -> None:
    """Cut short or made up: one clear error."""
    with pytest.raises(SandboxError, match="forged or cut short"):
        parsed(f"\0{about}\0./a\0\0".encode())


def test_list_of_ignored_files_is_passed_over() -> None:
    """A forged one cannot bring them into a patch."""
    assert parsed(b"\0f 644 1\0./x.pyc\0\0f 644 1\0./.venv/a\0\0f 644 1\0./a\0\0").keys() == {"a"}
