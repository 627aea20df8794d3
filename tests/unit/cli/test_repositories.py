"""Repositories as people have them: each is packed, looked at for uncommitted changes, and changed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.cli.pack import PackError, pack
from agent.cli.patch import PatchError, apply, refuse_uncommitted, uncommitted
from agent.repair.diff import unified_diff
from support.git import DIFF, commit, git

DIFF_BACK = "--- a/inner/a.py\n+++ b/inner/a.py\n@@ -1 +1 @@\n-x = 2\n+x = 3\n"
_NOBODY = 65534


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A repository with a committed file."""
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    return folder


def works(folder: Path) -> None:
    """Assert that a committed a.py is packed, seen as committed, changed, and then seen as changed."""
    assert "a.py" in pack(folder).names
    refuse_uncommitted(folder, ["a.py"])
    assert apply(DIFF, folder) == ["a.py"]
    assert (folder / "a.py").read_text() == "x = 2\n"
    with pytest.raises(PatchError, match=r"uncommitted changes in a\.py"):
        refuse_uncommitted(folder, ["a.py"])
    with pytest.raises(PatchError, match=r"uncommitted changes in a\.py"):
        apply(DIFF, folder)


def test_plain_repository_works(plain: Path) -> None:
    """Its git folder is left as it was: not even the index is refreshed."""
    index = (plain / ".git/index").read_bytes()
    before = {path: path.lstat().st_mtime_ns for path in (plain / ".git").rglob("*")}
    works(plain)
    assert (plain / ".git/index").read_bytes() == index
    assert {path: path.lstat().st_mtime_ns for path in (plain / ".git").rglob("*")} == before


def test_worktree_works(plain: Path, tmp_path: Path) -> None:
    """Its `.git` is a file, and what it shares lies in the first repository."""
    git(plain, "worktree", "add", "-q", "../tree")
    (plain / ".git/info/exclude").write_text("private.txt\n")
    (tmp_path / "tree/private.txt").write_text("mine")
    assert pack(tmp_path / "tree").names == ("a.py",)
    works(tmp_path / "tree")


def test_submodule_works_and_is_sent_with_the_project_around(plain: Path, tmp_path: Path) -> None:
    """Its `.git` is a file, too; its own repository says what it holds and what is committed."""
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    (outer / "a.py").write_text("x = 1\n")
    git(outer, "submodule", "--quiet", "add", str(plain), "inner")
    commit(outer)
    (outer / "inner/.gitignore").write_text("*.log\n")
    (outer / "inner/mine.log").write_text("mine")
    packed = pack(outer)
    assert packed.names == (".gitmodules", "a.py", "inner/.gitignore", "inner/a.py")
    assert packed.left_out == {}
    works(outer / "inner")
    works(outer)
    within = unified_diff({"inner/a.py": "x = 2\n"}, {"inner/a.py": "x = 3\n", "inner/mine.log": "ours"})
    with pytest.raises(PatchError, match=r"uncommitted changes in inner/a\.py"):
        apply(within, outer)
    commit(outer / "inner")
    assert apply(within, outer, sent=packed.names) == ["inner/a.py"]
    assert (outer / "inner/a.py").read_text() == "x = 3\n"
    assert (outer / "inner/mine.log").read_text() == "mine"
    subprocess.run(["git", "apply", "-R", "-"], cwd=outer, input=DIFF_BACK, text=True, check=True)
    assert (outer / "inner/a.py").read_text() == "x = 2\n"


def test_repositories_that_git_does_not_look_into_are_named(plain: Path, tmp_path: Path) -> None:
    """One that lies there untracked, and a submodule that was not checked out."""
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "--quiet", "add", str(plain), "inner")
    commit(outer)
    git(outer, "submodule", "--quiet", "deinit", "-f", "inner")
    git(tmp_path, "clone", "-q", str(plain), "outer/copy")
    assert pack(outer).left_out == {
        "copy/": "a repository of its own",
        "inner/": "a submodule that is not checked out",
    }
    (outer / "inner/.git").write_text("gitdir: ../nowhere\n")
    assert "names no repository that is there" in pack(outer).left_out["inner/"]
    shutil.rmtree(outer / ".git")
    (outer / ".gitmodules").unlink()
    (outer / "inner/.git").unlink()
    with pytest.raises(PackError, match=r"no files to send. Left out: copy/ \(a repository of its own\)"):
        pack(outer)


def test_submodule_of_a_submodule_in_a_worktree_is_sent(plain: Path, tmp_path: Path) -> None:
    """Each says for itself what it holds."""
    middle, outer = tmp_path / "middle", tmp_path / "outer"
    for folder, inner in ((middle, plain), (outer, middle)):
        folder.mkdir()
        git(folder, "init", "-q")
        git(folder, "submodule", "--quiet", "add", str(inner), "sub")
        commit(folder)
    git(outer, "worktree", "add", "-q", "../tree")
    git(tmp_path / "tree", "submodule", "--quiet", "update", "--init", "--recursive")
    (tmp_path / "tree/sub/sub/venv").mkdir()
    (tmp_path / "tree/sub/sub/venv/new.py").write_text("")
    packed = pack(tmp_path / "tree")
    assert packed.names == (".gitmodules", "sub/.gitmodules", "sub/sub/a.py")
    assert packed.left_out == {"sub/sub/venv/": "caches or dependencies, and not tracked by git"}
    assert uncommitted(tmp_path / "tree", packed.names) == []
    (tmp_path / "tree/sub/sub/a.py").write_text("x = 5\n")
    assert uncommitted(tmp_path / "tree", packed.names) == ["sub/sub/a.py"]


@pytest.mark.parametrize(
    "how", ["packed", "detached", "gone from HEAD", "shared", "split", "sha256", "partial"]
)
def test_repository_of_another_build_works(plain: Path, tmp_path: Path, how: str) -> None:
    """Refs, objects and index have many forms."""
    folder = plain
    match how:
        case "packed":
            git(folder, "gc", "-q")
            git(folder, "pack-refs", "--all")
        case "detached":
            git(folder, "checkout", "-q", "--detach")
        case "other branch":
            git(folder, "symbolic-ref", "HEAD", "refs/heads/other")
            git(folder, "branch", "other", "main")
        case "shared" | "partial":
            folder = tmp_path / "clone"
            git(plain, "config", "uploadpack.allowFilter", "true")
            option = "--shared" if how == "shared" else "--filter=blob:none"
            address = str(plain) if how == "shared" else f"file://{plain}"
            git(tmp_path, "clone", "-q", option, address, "clone")
        case "split":
            git(folder, "update-index", "--split-index")
            (folder / "b.py").write_text("y = 1\n")
            commit(folder)
            assert list((folder / ".git").glob("sharedindex.*"))
        case "sha256":
            shutil.rmtree(folder / ".git")
            git(folder, "init", "-q", "--object-format=sha256")
            commit(folder)
    works(folder)


def test_sparse_checkout_works(plain: Path) -> None:
    """What is not checked out is not there, and not deleted either."""
    for name in ("in/b.py", "out/c.py"):
        (plain / name).parent.mkdir()
        (plain / name).write_text("y = 1\n")
    commit(plain)
    git(plain, "sparse-checkout", "set", "--cone", "--sparse-index", "in")
    assert not (plain / "out").exists()
    assert pack(plain).names == ("a.py", "in/b.py")
    assert uncommitted(plain, ["a.py", "in/b.py", "out/c.py"]) == []
    works(plain)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
@pytest.mark.parametrize("split", [False, True])
def test_change_that_git_was_told_to_pass_over_is_seen(plain: Path, flag: str, split: bool) -> None:
    """A file that is marked so works while it is unchanged; its change is not written over."""
    if split:
        git(plain, "update-index", "--split-index")
    git(plain, "update-index", flag, "a.py")
    works(plain)
    assert git(plain, "ls-files", "-v", "a.py")[0] in "hS"


def test_repository_without_a_commit_has_all_uncommitted(tmp_path: Path) -> None:
    """Nothing could be got back."""
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("x = 1\n")
    assert pack(tmp_path).names == ("a.py",)
    with pytest.raises(PatchError, match=r"uncommitted changes in a\.py"):
        apply(DIFF, tmp_path)


def test_repository_whose_refs_cannot_be_seen_is_refused_for_apply(plain: Path) -> None:
    """It can be sent; whether something of it would be lost cannot be told."""
    (plain / ".git/reftable").mkdir()
    assert pack(plain).names == ("a.py",)
    with pytest.raises(PatchError, match=r"reftable.*Commit them, and give --force"):
        apply(DIFF, plain)
    assert apply(DIFF, plain, force=True) == ["a.py"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_repository_of_another_owner_is_looked_into(plain: Path) -> None:
    """Git itself would call its ownership dubious and say nothing of what is uncommitted."""
    (plain / "a.py").write_text("x = 1\nmine = 1\n")
    for path in (plain, *plain.rglob("*")):
        os.lchown(path, _NOBODY, _NOBODY)
    assert subprocess.run(["git", "status"], cwd=plain, capture_output=True, check=False).returncode == 128
    with pytest.raises(PatchError, match=r"uncommitted changes in a\.py"):
        apply(DIFF, plain)
    assert (plain / "a.py").read_text() == "x = 1\nmine = 1\n"
    (plain / ".git/index").write_bytes(b"no index" * 10)
    with pytest.raises(PatchError, match="cannot be told"):
        apply(DIFF, plain)
    with pytest.raises(PackError, match="git cannot list the files"):
        pack(plain)


@pytest.mark.parametrize("where", ["user", "default", "repository", "included"])
def test_excludes_of_the_user_count_wherever_they_are_named(plain: Path, home: Path, where: str) -> None:
    """In the user's configuration or the repository's own, also in a file that it includes."""
    (plain / "notes.txt").write_text("mine")
    (home / "excludes").write_text("notes.txt\n")
    match where:
        case "user":
            git(plain, "config", "--global", "core.excludesFile", "~/excludes")
        case "default":
            (home / ".config/git").mkdir(parents=True)
            (home / "excludes").rename(home / ".config/git/ignore")
        case "repository":
            git(plain, "config", "core.excludesFile", str(home / "excludes"))
        case "included":
            (home / "more").write_text(f'[core]\nexcludesFile = "{home}/excludes"\n')
            git(plain, "config", "include.path", str(home / "more"))
    assert pack(plain).names == ("a.py",)


def test_filters_of_the_user_do_not_run_and_do_not_matter(plain: Path) -> None:
    """As git-lfs: the file is packed and changed as it is, and seen as committed while nobody touched it."""
    git(plain, "config", "--global", "filter.lfs.clean", "tr a-z A-Z")
    git(plain, "config", "--global", "filter.lfs.smudge", "tr A-Z a-z")
    git(plain, "config", "--global", "filter.lfs.required", "true")
    (plain / ".gitattributes").write_text("a.py filter=lfs\n")
    os.utime(plain / "a.py", (1, 1))  # long before the index is written, or git would compare what it holds
    commit(plain)
    assert git(plain, "show", "HEAD:a.py") == "X = 1\n"
    assert pack(plain).project["a.py"] == "x = 1\n"
    works(plain)


def test_line_ends_are_compared_as_git_compares_them_and_applied_as_they_are(plain: Path) -> None:
    """A file with CRLF that git keeps with LF is committed, and a diff of what was sent fits it."""
    git(plain, "config", "core.autocrlf", "true")
    (plain / "a.py").write_bytes(b"x = 1\r\n")
    git(plain, "add", "a.py")
    os.utime(plain / "a.py", (1, 1))
    assert uncommitted(plain, ["a.py"]) == []
    assert pack(plain).project["a.py"] == "x = 1\r\n"
    crlf = DIFF.replace("x = 1\n", "x = 1\r\n").replace("x = 2\n", "x = 2\r\n")
    assert apply(crlf, plain) == ["a.py"]
    assert (plain / "a.py").read_bytes() == b"x = 2\r\n"


def test_file_keeps_its_mode_and_becomes_executable_when_the_diff_says_so(plain: Path) -> None:
    """Others than the owner gain nothing that they did not have."""
    (plain / "a.py").chmod(0o600)
    apply(DIFF, plain)
    assert (plain / "a.py").stat().st_mode & 0o777 == 0o600
    executable = "diff --git a/a.py b/a.py\nold mode 100644\nnew mode 100755\n"
    apply(executable, plain, force=True)
    assert (plain / "a.py").stat().st_mode & 0o777 == 0o700
    apply("diff --git a/a.py b/a.py\nold mode 100755\nnew mode 100644\n", plain, force=True)
    assert (plain / "a.py").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("way", ["file to folder", "folder to file"])
def test_file_and_folder_change_places(plain: Path, way: str) -> None:
    """All of it, or nothing."""
    gone, come = ("a.py", "a.py/b.py") if way == "file to folder" else ("c/d.py", "c")
    (plain / gone).parent.mkdir(exist_ok=True)
    (plain / gone).write_text("x = 1\n")
    if way == "folder to file":
        commit(plain)
    diff = unified_diff({gone: "x = 1\n"}, {come: "y = 1\n"})
    assert apply(diff, plain) == sorted([gone, come])
    assert (plain / come).read_text() == "y = 1\n"
