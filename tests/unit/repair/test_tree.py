"""Trees of files: what is read of a listing, what differs, what is protected."""

import subprocess
from pathlib import Path

import pytest

from agent.errors import SandboxError
from agent.repair.ignoring import CACHES, DEPENDENCIES, NO_SCOPE, VERSION_CONTROL, Scope
from agent.repair.tree import (
    PROTECTED,
    differing,
    listing_command,
    matches,
    parsed,
    printable,
    text_entry,
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
    subprocess.run(["bash", "-c", listing_command(str(listing), NO_SCOPE)], cwd=tmp_path, check=True)
    found = parsed(listing.read_bytes(), NO_SCOPE)
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
    subprocess.run(["bash", "-c", listing_command(str(listing), NO_SCOPE)], cwd=tmp_path, check=True)
    assert parsed(listing.read_bytes()) == {}


def test_differing_names_what_was_changed_added_and_deleted() -> None:
    """Also a file of the same text whose mode is another."""
    before = {name: text_entry("x") for name in ("same", "text", "gone", "mode")}
    after = {"same": text_entry("x"), "text": text_entry("y"), "new": text_entry("x")}
    after["mode"] = text_entry("x", executable=True)
    assert differing(before, after) == ["gone", "mode", "new", "text"]


@pytest.mark.parametrize("folder", [*CACHES, *DEPENDENCIES, *VERSION_CONTROL])
def test_scope_ignores_folders_at_any_depth(folder: str) -> None:
    """As the listing does; a file of such a name is one like others."""
    assert NO_SCOPE.ignored(f"a/{folder}/b")
    assert not NO_SCOPE.ignored(f"a/{folder}")


@pytest.mark.parametrize("folder", DEPENDENCIES)
def test_scope_has_a_package_that_is_named_like_dependencies(folder: str) -> None:
    """It was sent, and what is new in it belongs to it; another one of the name does not."""
    scope = Scope.of([f"src/{folder}/a.js", "b.py"])
    assert not scope.ignored(f"src/{folder}/new.js")
    assert scope.ignored(f"{folder}/a.js")
    assert scope.ignored(f"src/{folder}/more/{folder}/a.js")


@pytest.mark.parametrize("mark", [".venv/pyvenv.cfg", "node_modules/.package-lock.json"])
def test_scope_knows_installed_dependencies_that_were_sent_along(mark: str) -> None:
    """They stay where they are, and are no part of a patch."""
    folder = mark.partition("/")[0]
    assert Scope.of([mark, f"{folder}/lib/a.py"]).ignored(f"{folder}/lib/a.py")


@pytest.mark.parametrize("many", [False, True])
def test_listing_has_the_projects_own_folders_and_no_others(tmp_path: Path, many: bool) -> None:
    """Whatever characters are in their names, and however many there are."""
    sent = ["venv/a", "x [1]*/node_modules/b", *(f"d{at}/venv/c" for at in range(50 if many else 0))]
    scope = Scope.of(sent)
    folder = tmp_path / "project"
    for name in [*sent, "x 1/node_modules/no", ".venv/no", "y/venv/no"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    command = listing_command("../listing", scope)
    subprocess.run(["bash", "-c", command], cwd=folder, check=True)
    assert sorted(parsed((tmp_path / "listing").read_bytes(), scope)) == sorted(sent)


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
    assert parsed(b"\0f 644 1\0./x.pyc\0\0f 644 1\0./.venv/a\0\0f 644 1\0./a\0\0", NO_SCOPE).keys() == {"a"}
