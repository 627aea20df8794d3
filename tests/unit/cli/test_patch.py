"""How a diff comes back into the folder that was sent."""

import shutil
import subprocess
from pathlib import Path

import pytest

from agent.cli.patch import PatchError, apply, refuse_uncommitted, touched, uncommitted
from support.git import commit, git

DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
AS_GIT = f"diff --git a/a.py b/a.py\n{DIFF}"
"""What a repair gives: git takes these paths for those of a repository's root."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a few files in it."""
    folder = tmp_path / "folder"
    for name, text in {"a.py": "x = 1\n", "tests/test_a.py": "", "deep/kept.txt": "\u00e9\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def repository(folder: Path) -> Path:
    """The root of a repository, whose subfolder `deep/in ner` has an `a.py` as the root has."""
    inner = folder / "deep/in ner"
    inner.mkdir()
    for name in ("a.py", "gone.py"):
        (inner / name).write_text("x = 1\n")
    git(folder, "init", "-q")
    commit(folder)
    return folder


EVERYTHING = (
    AS_GIT
    + "diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n"
    + "--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n"
    + "diff --git a/new/b.py b/new/b.py\nnew file mode 100644\n"
    + "--- /dev/null\n+++ b/new/b.py\n@@ -0,0 +1 @@\n+y = 1\n"
)


@pytest.mark.parametrize("way", ["root", "from above", "from inside", "link", "link in it", "no repository"])
def test_git_diff_is_applied_where_it_was_made_for(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A repository's root or a folder in it, however that is named, or none; and nowhere else."""
    inner = repository / "deep/in ner"
    (tmp_path / "link").symlink_to(inner)
    (repository / "link").symlink_to("deep/in ner")
    monkeypatch.chdir(inner if way == "from inside" else repository)
    if way == "root":
        shutil.copy(inner / "gone.py", repository)
        git(repository, "add", "gone.py")
        git(repository, "commit", "-qm", "y")
    if way == "no repository":
        shutil.rmtree(repository / ".git")
    folder = {
        "root": Path(),
        "from inside": Path(),
        "link": tmp_path / "link",
        "link in it": Path("link"),
    }.get(way, Path("deep/in ner"))
    named = ["a.py", "gone.py", "new/b.py"]
    assert touched(EVERYTHING) == named
    assert apply(EVERYTHING, folder) == named
    changed, other = (repository, inner) if way == "root" else (inner, repository)
    assert (changed / "a.py").read_text() == "x = 2\n"
    assert (changed / "new/b.py").read_text() == "y = 1\n"
    assert not (changed / "gone.py").exists()
    assert (other / "a.py").read_text() == "x = 1\n"
    assert not (other / "new").exists()


def test_uncommitted_changes_of_a_subfolder_are_those_of_the_files_to_change(repository: Path) -> None:
    """A file of the same name at the root does not count, the subfolder's own does; an untracked one, too."""
    inner = repository / "deep/in ner"
    (repository / "a.py").write_text("y = 1\n")
    assert apply(AS_GIT, inner) == ["a.py"]
    with pytest.raises(PatchError, match=r"uncommitted changes in a\.py: commit"):
        apply(AS_GIT.replace("x = 1", "x = 2").replace("+x = 2", "+x = 3"), inner)
    assert (inner / "a.py").read_text() == "x = 2\n"
    (inner / "new").mkdir()
    (inner / "new/b.py").write_text("mine\n")
    git(repository, "checkout", "--", "deep/in ner/a.py")
    with pytest.raises(PatchError, match=r"uncommitted changes in new/b\.py: commit"):
        apply(EVERYTHING, inner)
    assert (inner / "new/b.py").read_text() == "mine\n"
    assert (inner / "a.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("path", ["../outside.py", "../../outside.py", ".git/hooks/pre-commit", "link/x.py"])
def test_git_diff_of_a_subfolder_stays_inside(repository: Path, tmp_path: Path, path: str) -> None:
    """Not into the repository around it either, nor behind a link."""
    inner = repository / "deep/in ner"
    (inner / "link").symlink_to(tmp_path)
    names = f"a/{path} b/{path}"
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(PatchError):
        apply(
            f"diff --git {names}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+z\n",
            inner,
        )
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("repository", [False, True])
def test_apply_changes_the_files(folder: Path, repository: bool) -> None:
    """In a repository without uncommitted changes, and outside of any."""
    if repository:
        git(folder, "init", "-q")
        commit(folder)
    apply(DIFF, folder)
    assert (folder / "a.py").read_text() == "x = 2\n"


def test_apply_in_a_subfolder_of_a_repository_changes_that_subfolder(folder: Path) -> None:
    """Paths are relative to the folder that was sent."""
    git(folder, "init", "-q")
    (folder / "deep/a.py").write_text("x = 1\n")
    commit(folder)
    apply(DIFF, folder / "deep")
    assert (folder / "deep/a.py").read_text() == "x = 2\n"
    assert (folder / "a.py").read_text() == "x = 1\n"


def test_apply_refuses_uncommitted_changes_unless_forced(folder: Path) -> None:
    """Only files that the diff touches count."""
    git(folder, "init", "-q")
    commit(folder)
    (folder / "a.py").write_text("x = 1\ny = 1\n")
    with pytest.raises(PatchError, match=r"uncommitted changes in a\.py"):
        apply(DIFF, folder)
    assert (folder / "a.py").read_text() == "x = 1\ny = 1\n"
    apply("--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -0,0 +1 @@\n+z = 1\n", folder)
    assert (folder / "tests/test_a.py").read_text() == "z = 1\n"


def test_uncommitted_changes_are_refused_before_anything_is_sent(folder: Path) -> None:
    """Of files that are sent; in a subfolder of a repository, too."""
    git(folder, "init", "-q")
    (folder / "deep/a.py").write_text("x = 1\n")
    commit(folder)
    refuse_uncommitted(folder / "deep", ["a.py"])
    (folder / "a.py").write_text("y = 1\n")
    refuse_uncommitted(folder / "deep", ["a.py"])
    (folder / "deep/a.py").write_text("y = 1\n")
    with pytest.raises(PatchError, match=r"Nothing was sent: .* in a\.py\. Commit them, .* --force"):
        refuse_uncommitted(folder / "deep", ["a.py"])
    refuse_uncommitted(folder / "deep", ["kept.txt"])


def test_apply_that_does_not_fit_changes_nothing(folder: Path) -> None:
    """Not even the part that would fit."""
    both = DIFF + "--- a/deep/kept.txt\n+++ b/deep/kept.txt\n@@ -1 +1 @@\n-other\n+new\n"
    with pytest.raises(PatchError, match="do not fit"):
        apply(both, folder)
    assert (folder / "a.py").read_text() == "x = 1\n"


def test_touched_names_each_file_once_as_the_folder_has_it(folder: Path) -> None:
    """Also added, deleted and renamed ones, odd names, and in a subfolder of a repository."""
    git(folder, "init", "-q")
    for name in ("old.py", "mode.sh", 'caf\u00e9 "x".py', "deep/[a].py"):
        (folder / name).write_text("x = 1\n")
    commit(folder)
    (folder / "old.py").unlink()
    (folder / "mode.sh").chmod(0o755)
    (folder / 'caf\u00e9 "x".py').write_text("x = 2\n")
    (folder / "deep/[a].py").write_text("x = 2\n")
    (folder / "new.py").write_text("y = 1\n")
    git(folder, "add", "-A", "-N")
    command = ["git", "diff", "HEAD"]
    diff = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    named = ['caf\u00e9 "x".py', "deep/[a].py", "mode.sh", "new.py", "old.py"]
    assert touched(diff) == named
    assert uncommitted(folder, named) == named


def test_diff_that_leads_outside_is_refused(folder: Path, tmp_path: Path) -> None:
    """A patch from a server writes into the folder alone, repository or not."""
    outside = "--- /dev/null\n+++ b/../outside.py\n@@ -0,0 +1 @@\n+z = 1\n"
    with pytest.raises(PatchError, match="leads out of the folder"):
        apply(outside, folder)
    assert not (folder / "../outside.py").exists()


def test_diff_that_is_none_is_refused(folder: Path) -> None:
    """With what git says of it."""
    with pytest.raises(PatchError, match="cannot be read"):
        apply("no diff", folder)
