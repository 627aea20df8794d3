"""Whatever a folder names for git to start, nothing of it runs: not when it is packed, checked or changed."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.cli.git import GitError, in_repository
from agent.cli.pack import PackError, pack
from agent.cli.patch import PatchError, apply, refuse_uncommitted, uncommitted
from support.git import DIFF, commit, git


@dataclass(frozen=True)
class Trap:
    """A project, and a program that leaves a marker when something starts it."""

    folder: Path
    marker: Path
    program: Path

    def set(self, key: str, value: str | None = None, folder: Path | None = None) -> None:
        """Set a variable of a repository's configuration; by default to the program."""
        git(folder or self.folder, "config", key, value or str(self.program))

    def append(self, name: str, text: str) -> None:
        """Add to a file of the project."""
        with (self.folder / name).open("a") as file:
            file.write(text)


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    """A committed project whose file git has to look into again, since its times have changed."""
    folder = tmp_path / "project"
    folder.mkdir()
    program, marker = tmp_path / "program", tmp_path / "marker"
    program.write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n")
    program.chmod(0o755)
    (folder / "a.py").write_text("x = 1\n")
    (folder / ".gitattributes").write_text("* filter=trap diff=trap merge=trap\n")
    git(folder, "init", "-q")
    commit(folder)
    os.utime(folder / "a.py", (1, 1))
    return Trap(folder, marker, program)


def monitor(trap: Trap) -> Path:
    """A monitor of changes."""
    trap.set("core.fsmonitor")
    return trap.folder


def monitor_included(trap: Trap) -> Path:
    """The same, in a file that the configuration includes."""
    (trap.folder / "more").write_text(f"[core]\nfsmonitor = {trap.program}\n")
    trap.set("include.path", "../more")
    return trap.folder


def monitor_included_on_condition(trap: Trap) -> Path:
    """The same, included for this folder alone."""
    (trap.folder / "more").write_text(f"[core]\nfsmonitor = {trap.program}\n")
    trap.set(f"includeIf.gitdir:{trap.folder}/.path", "../more")
    return trap.folder


def monitor_of_a_worktree(trap: Trap) -> Path:
    """The same, in a worktree's own configuration."""
    trap.set("extensions.worktreeConfig", "true")
    (trap.folder / ".git/config.worktree").write_text(f"[core]\nfsmonitor = {trap.program}\n")
    return trap.folder


def monitor_of_the_repository_around(trap: Trap) -> Path:
    """The same, around the folder that is given."""
    trap.set("core.fsmonitor")
    inner = trap.folder / "inner"
    inner.mkdir()
    shutil.copy(trap.folder / "a.py", inner)
    return inner


def git_file(trap: Trap) -> Path:
    """A `.git` file that names another folder."""
    trap.set("core.fsmonitor")
    (trap.folder / ".git").rename(trap.folder / "docs")
    (trap.folder / ".git").write_text("gitdir: docs\n")
    return trap.folder


def bare_folder(trap: Trap) -> Path:
    """A folder laid out as a bare repository, that says it has files."""
    inner = trap.folder / "inner"
    shutil.copytree(trap.folder / ".git", inner)
    (inner / "config").write_text(
        f"[core]\nrepositoryFormatVersion = 0\nbare = false\nworktree = .\nfsmonitor = {trap.program}\n"
    )
    shutil.rmtree(trap.folder / ".git")
    shutil.copy(trap.folder / "a.py", inner)
    return inner


def files_elsewhere(trap: Trap) -> Path:
    """A repository that says that its files lie in the folder above."""
    trap.set("core.worktree", "../..")
    trap.set("core.fsmonitor")
    return trap.folder


def clean_filter(trap: Trap) -> Path:
    """A filter for what goes into the repository."""
    trap.set("filter.trap.clean")
    return trap.folder


def smudge_filter(trap: Trap) -> Path:
    """A filter for what comes out of it."""
    trap.set("filter.trap.smudge")
    return trap.folder


def process_filter(trap: Trap) -> Path:
    """A filter that stays."""
    trap.set("filter.trap.process")
    return trap.folder


def filter_of_the_users(trap: Trap) -> Path:
    """A filter that the user's own configuration names, and the folder's attributes choose."""
    (Path.home() / ".gitconfig").write_text(f'[filter "trap"]\nclean = {trap.program}\n')
    return trap.folder


def hook(trap: Trap) -> Path:
    """A hook that runs when the index is written."""
    shutil.copy(trap.program, trap.folder / ".git/hooks/post-index-change")
    return trap.folder


def hooks_path(trap: Trap) -> Path:
    """The same, in a folder that the configuration names."""
    (trap.folder / "hooks").mkdir()
    shutil.copy(trap.program, trap.folder / "hooks/post-index-change")
    trap.set("core.hooksPath", "hooks")
    return trap.folder


def submodule(trap: Trap) -> Path:
    """A monitor in the configuration of a submodule."""
    inner = trap.folder / "inner"
    inner.mkdir()
    (inner / "b.py").write_text("y = 1\n")
    git(inner, "init", "-q")
    git(inner, "add", "-A")
    git(inner, "commit", "-qm", "x")
    git(trap.folder, "submodule", "add", "./inner", "inner")
    git(trap.folder, "commit", "-qam", "y")
    trap.set("core.fsmonitor", folder=inner)
    return trap.folder


def promised_objects(trap: Trap) -> Path:
    """Objects that are missing, with a remote whose address is a command."""
    trap.set("core.repositoryFormatVersion", "1")
    trap.set("extensions.partialClone", "origin")
    trap.set("remote.origin.promisor", "true")
    trap.set("remote.origin.url", f"ext::{trap.program}")
    trap.set("protocol.ext.allow", "always")
    tree = subprocess.check_output(["git", "rev-parse", "HEAD^{tree}"], cwd=trap.folder, text=True).strip()
    (trap.folder / f".git/objects/{tree[:2]}/{tree[2:]}").unlink()
    return trap.folder


VECTORS = [
    monitor,
    monitor_included,
    monitor_included_on_condition,
    monitor_of_a_worktree,
    monitor_of_the_repository_around,
    git_file,
    bare_folder,
    files_elsewhere,
    clean_filter,
    smudge_filter,
    process_filter,
    filter_of_the_users,
    hook,
    hooks_path,
    submodule,
    promised_objects,
]


def all_that_git_is_asked(folder: Path) -> None:
    """Pack a folder, look for uncommitted changes and apply a diff, whatever is refused of it."""
    for work in (
        lambda: pack(folder),
        lambda: pack(folder, archived=True),
        lambda: refuse_uncommitted(folder, ["a.py"]),
        lambda: apply(DIFF, folder),
        lambda: apply(DIFF.replace("-x", "-y"), folder, force=True),
        lambda: apply(DIFF, folder, force=True),
    ):
        try:
            work()
        except (PackError, PatchError):
            continue


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.__name__)
def test_program_that_a_folder_names_for_git_never_runs(trap: Trap, vector: Callable[[Trap], Path]) -> None:
    """The trap is real, since plain git falls into it; ours does not, before or after any question."""
    folder = vector(trap)
    trap.marker.unlink(missing_ok=True)
    all_that_git_is_asked(folder)
    assert not trap.marker.exists()
    os.utime(trap.folder / "a.py", (2, 2))
    (trap.folder / "a.py").write_text("x = 1\n")
    git(folder, "status", check=False)
    subprocess.run(["git", "apply", "-"], cwd=folder, input=DIFF.encode(), capture_output=True, check=False)
    assert trap.marker.exists(), "git itself does not start it: this is no trap"


@pytest.mark.parametrize(
    "variables",
    [
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "{program}"},
        {"GIT_CONFIG_PARAMETERS": "'core.fsmonitor={program}'"},
        {"GIT_DIR": "{trap}/.git", "GIT_WORK_TREE": "{trap}"},
        {"GIT_COMMON_DIR": "{trap}/.git"},
        {"GIT_EXEC_PATH": "{trap}"},
        {"GIT_EXTERNAL_DIFF": "{program}", "GIT_PAGER": "{program}", "GIT_EDITOR": "{program}"},
    ],
    ids=lambda variables: next(iter(variables)),
)
def test_variables_of_git_do_not_reach_it(
    trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    """Another repository, another configuration, other programs: what is exported counts for none of it."""
    monitor(trap)
    shutil.copy(trap.program, trap.folder / "git-apply")
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.py").write_text("x = 1\n")
    git(other, "init", "-q")
    trap.marker.unlink(missing_ok=True)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(program=trap.program, trap=trap.folder))
    assert pack(other).names == ("a.py",)
    assert uncommitted(other, ["a.py"]) == ["a.py"]
    assert apply(DIFF, other, force=True) == ["a.py"]
    assert not trap.marker.exists()


@pytest.mark.parametrize("entry", [".", "", "bin"])
def test_git_of_the_current_folder_is_not_the_one_that_runs(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    """A relative entry of PATH is the folder's word, wherever one stands."""
    (trap.folder / "bin").mkdir()
    for place in (trap.folder, trap.folder / "bin"):
        shutil.copy(trap.program, place / "git")
    monkeypatch.chdir(trap.folder)
    monkeypatch.setenv("PATH", f"{entry}{os.pathsep}{os.environ['PATH']}")
    all_that_git_is_asked(Path())
    assert not trap.marker.exists()


def test_git_may_start_nothing_where_the_kernel_heeds_it(trap: Trap) -> None:
    """Should a trap be unknown to us, a fork is refused; for root no such limit holds."""
    with in_repository(trap.folder) as ours:
        (ours.view / "config").write_text(f"[core]\nfsmonitor = {trap.program}\n")
        ours.run("status")
    assert trap.marker.exists() == (os.geteuid() == 0)


@pytest.mark.parametrize("name", [".git", ".git/index", ".git/HEAD", ".git/config", ".gitignore"])
def test_pipe_in_place_of_a_file_that_git_reads_is_refused(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nobody waits for a writer that never comes."""
    monkeypatch.setattr("agent.cli.git._LIMIT_S", 1)
    place = trap.folder / name
    shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    os.mkfifo(place)
    all_that_git_is_asked(trap.folder)


@pytest.mark.parametrize("name", ["HEAD", "index", "config", "objects", "refs", "info/exclude", "commondir"])
def test_damaged_repository_is_refused_where_something_could_be_lost(trap: Trap, name: str) -> None:
    """What is uncommitted cannot be told: no traceback, and no file is changed."""
    (trap.folder / "a.py").write_text("x = 1\nmine = 1\n")
    place = trap.folder / ".git" / name
    shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    place.symlink_to(trap.folder / ".git/description") if name == "objects" else place.mkdir()
    all_that_git_is_asked(trap.folder)
    if name != "refs":  # empty, as in a repository without a commit
        with pytest.raises(PatchError, match="cannot be told"):
            apply(DIFF, trap.folder)
    with pytest.raises(PatchError):
        apply(DIFF, trap.folder)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("gitdir: nowhere\n", "names no repository that is there"),
        ("something else\n", "names no repository that is there"),
        ("gitdir: a\nb\n", "is not as git writes it"),
    ],
)
def test_git_file_that_names_nothing_is_refused(trap: Trap, text: str, why: str) -> None:
    """What git would count of the folder cannot be known."""
    shutil.rmtree(trap.folder / ".git")
    (trap.folder / ".git").write_text(text)
    with pytest.raises(PackError, match=why):
        pack(trap.folder)
    with pytest.raises(PatchError, match="cannot be told"):
        apply(DIFF, trap.folder)
    assert (trap.folder / "a.py").read_text() == "x = 1\n"


def test_git_folder_itself_is_no_project(trap: Trap) -> None:
    """It holds the addresses and often the keys of remotes."""
    for folder in (trap.folder / ".git", trap.folder / ".git/hooks"):
        with pytest.raises(PackError, match="is git's own folder"):
            pack(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_repository_that_somebody_else_put_around_a_folder_is_refused(tmp_path: Path) -> None:
    """As into /tmp: its index would have files sent that the folder's own .gitignore keeps back."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in {".gitignore": "private\n", "private": "mine", "a.py": "x = 1\n"}.items():
        (folder / name).write_text(text)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-f", "mine/private")
    os.chown(tmp_path / ".git", 65534, 65534)
    with pytest.raises(PackError, match="belongs to another user"):
        pack(folder)
    git(folder, "init", "-q")
    assert pack(folder).names == (".gitignore", "a.py")


def test_repository_whose_files_lie_elsewhere_is_refused(trap: Trap) -> None:
    """The line says where, and what to do."""
    trap.set("core.worktree", "../..")
    with pytest.raises(GitError, match=r"core\.worktree.*name that folder"), in_repository(trap.folder):
        pass
