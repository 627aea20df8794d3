"""Git on the user's machine: the one place that runs it, with nothing on that a folder can name.

A repository's configuration names programs that even `git status` starts: monitors, filters, hooks, a
submodule's own. Attributes choose among them, a `.git` file or a folder laid out as a bare repository brings
another configuration. A list of switches would have to know all of them, so git never works in a repository
of the user's here. It gets a git folder made for the moment, a view:

- its configuration is ours; of the system's, the user's and the repository's own only what `_CARRIED` lists
  is taken over, and the file of excludes: they change how files compare, and name no program;
- its attributes take every filter from every file, before any `.gitattributes` is asked;
- of the repository it has copies of the index and of HEAD, and links to what it only reads: objects and refs;
- its environment has no variable of git's but ours, and only absolute folders on the PATH;
- where the kernel heeds it (not for root), git may not start any process.
"""

import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Literal

from agent.cli.folder import read_regular
from agent.cli.processes import absolute_path, find_program, inherited

Command = Literal["apply", "check-ignore", "config", "ls-files", "status", "update-index"]
"""What git is asked to do here: all built in, none of them for the network."""

_LIMIT_S = 60
_MAX_OUTPUT_BYTES = 64_000_000
_MAX_WRITTEN_BYTES = 512_000_000
_MAX_MEMORY_BYTES = 2_000_000_000
_MAX_INDEX_BYTES = 128_000_000
_MAX_TEXT_BYTES = 1_000_000
_SHARED_INDEXES = 100

_YES_OR_NO = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0"})
_CARRIED: Mapping[str, frozenset[str]] = {
    "core.autocrlf": _YES_OR_NO | {"input"},
    "core.eol": frozenset({"lf", "crlf", "native"}),
    "core.filemode": _YES_OR_NO,
    "core.ignorecase": _YES_OR_NO,
    "core.symlinks": _YES_OR_NO,
    "core.precomposeunicode": _YES_OR_NO,
    "core.trustctime": _YES_OR_NO,
    "core.checkstat": frozenset({"default", "minimal"}),
    "extensions.objectformat": frozenset({"sha1", "sha256"}),
}

_OURS = """
[core]
    repositoryFormatVersion = 1
    fsmonitor = false
    untrackedCache = false
    hooksPath = /dev/null
    protectHFS = true
    protectNTFS = true
    # Threads count as processes, and git may start none.
    preloadIndex = false
    packedGitWindowSize = 32m
    packedGitLimit = 256m
[index]
    threads = 1
[pack]
    threads = 1
[protocol]
    allow = never
"""
_NO_FILTERS = "* !filter !diff !merge\n"
_AS_THEY_ARE = "* !filter !diff !merge -text !eol !ident !working-tree-encoding\n"

_ENVIRONMENT: dict[str, str] = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_WHERE_USERS_ARE = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


class GitError(Exception):
    """Git is missing, could not be asked, or refused; nothing of the user's was changed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How git ended, and what it wrote."""

    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def names(self) -> list[str]:
        """The NUL-separated names on its output."""
        return [os.fsdecode(name) for name in self.stdout.split(b"\0") if name]

    @property
    def said(self) -> str:
        """What it complained of, for an error message."""
        return self.stderr.decode("utf-8", "replace").strip() or f"git ended with {self.returncode}"


@dataclass(frozen=True, slots=True)
class Git:
    """Git with a view of its own, in a folder."""

    folder: Path
    """Where it works; its paths are relative to this."""
    root: Path
    """Of the files: the repository's, or the folder itself."""
    view: Path
    """The git folder made for the moment."""
    common: Path | None = None
    """The git folder that the view was made from; None outside of a repository."""

    @property
    def prefix(self) -> str:
        """The folder as seen from the root: empty, or with a slash at its end."""
        return "" if self.folder == self.root else f"{self.folder.relative_to(self.root)}/"

    @property
    def hidden_commits(self) -> str:
        """Why the view shows no commits although there may be some; empty when it shows what there is."""
        if self.common is None:
            marks = [root / ".git" for root in _around(self.root)]
            return next((f"{mark} is no repository" for mark in marks if os.path.lexists(mark)), "")
        return f"{self.common} keeps its refs as a reftable" if (self.common / "reftable").is_dir() else ""

    def run(self, command: Command, *arguments: str, stdin: bytes = b"") -> Answer:
        """Run one of git's commands in the folder.

        Raises:
            GitError: git is missing, takes too long or writes too much.
        """
        places = {"GIT_DIR": str(self.view), "GIT_WORK_TREE": str(self.root)}
        return _run([command, *arguments], cwd=self.folder, env=_ENVIRONMENT | places, stdin=stdin)


def find_git() -> str | None:
    """Return the path of git; never one that the current folder brings."""
    return find_program("git")


@contextmanager
def in_repository(folder: Path) -> Iterator[Git]:
    """Give git in a folder, with the index, commits and excludes of the repository around it.

    Raises:
        GitError: git is missing, or what is there cannot be taken for a repository.
        OSError: the folder or its repository cannot be read.
    """
    folder = folder.resolve()
    with _view(_NO_FILTERS) as view:
        found = _repository(folder)
        if found is None:
            _configure(view, _users_settings(view))
            yield Git(folder, folder, view)
        else:
            root, repository = found
            common = _common(repository)
            _configure(view, _users_settings(view) | _own_settings(view, root, repository, common))
            _borrow(view, repository, common)
            yield Git(folder, root, view, common)


@contextmanager
def outside(folder: Path) -> Iterator[Git]:
    """Give git in a folder of our own, for which no repository counts and no bytes are converted.

    Raises:
        GitError: git is missing.
    """
    with _view(_AS_THEY_ARE) as view:
        _configure(view, {})
        yield Git(folder, folder, view)


@contextmanager
def _view(attributes: str) -> Iterator[Path]:
    if find_git() is None:
        raise GitError("git is not installed.")
    with tempfile.TemporaryDirectory(prefix="sandbox-agent-git-") as made:
        view = Path(made)
        for name in ("info", "objects", "refs"):
            (view / name).mkdir()
        (view / "HEAD").write_text("ref: refs/heads/none\n")
        (view / "config").write_text(_OURS)
        (view / "info/attributes").write_text(attributes)
        yield view


def _configure(view: Path, settings: Mapping[str, str]) -> None:
    lines = []
    for key, value in settings.items():
        section, _, name = key.partition(".")
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[{section}]\n    {name} = "{escaped}"\n')
    # Ours last: the last word on a variable counts.
    (view / "config").write_text("".join(lines) + _OURS)


def _users_settings(view: Path) -> dict[str, str]:
    given = inherited()
    kept = {name: given[name] for name in _WHERE_USERS_ARE if name in given}
    places = {"GIT_DIR": str(view), "LC_ALL": "C"} | kept
    listed = _run(["config", "--null", "--list"], cwd=view, env=places)
    return _carried(_entries(listed, "your git configuration"), Path.home())


def _own_settings(view: Path, root: Path, repository: Path, common: Path) -> dict[str, str]:
    """Return what a repository's configuration says, as far as it is carried over.

    Raises:
        GitError: it cannot be read, or has the files elsewhere.
    """
    found: dict[str, str] = {}
    for file in (common / "config", repository / "config.worktree"):
        if not os.path.lexists(file):
            continue
        read_regular(file, 1, follow=True)  # git would wait for a pipe's writer
        command = ["config", "--file", str(file), "--includes", "--null", "--list"]
        listed = _run(command, cwd=view, env=_ENVIRONMENT)
        said = _entries(listed, str(file))
        elsewhere = said.get("core.worktree")
        if elsewhere and not _same(repository / elsewhere, root):
            raise GitError(
                f"{file} says that the files of {root} lie in {elsewhere} (core.worktree): name that folder "
                "if it is yours, or take the line out."
            )
        found |= _carried(said, root)
    return found


def _entries(answer: Answer, where: str) -> dict[str, str]:
    if answer.returncode != 0:
        raise GitError(f"{where} cannot be read: {answer.said}")
    entries = (os.fsdecode(entry).partition("\n") for entry in answer.stdout.split(b"\0") if entry)
    # A name without a value means yes.
    return {key: value if separator else "true" for key, separator, value in entries}


def _carried(said: Mapping[str, str], base: Path) -> dict[str, str]:
    kept = {key: word for key, words in _CARRIED.items() if (word := said.get(key, "").lower()) in words}
    excludes = said.get("core.excludesfile")
    if excludes is not None and excludes.isprintable():
        with suppress(RuntimeError):  # no such user
            kept["core.excludesfile"] = str(base / Path(excludes or os.devnull).expanduser())
    return kept


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _repository(folder: Path) -> tuple[Path, Path] | None:
    """Return the root of the files and the git folder of the repository that a folder is in.

    As git looks for them, but for bare repositories, which have no files, and across no file system.

    Raises:
        GitError: a `.git` file names nothing, or the folder is in git's own.
    """
    for root in _around(folder):
        mark = root / ".git"
        if mark.is_file():
            _check_owner(mark, folder)
            return root, _named_in(mark)
        if _is_git_folder(mark):
            if folder.is_relative_to(mark):
                raise GitError(f"{folder} is git's own folder, and no project.")
            _check_owner(mark, folder)
            return root, mark
    return None


def _around(folder: Path) -> Iterator[Path]:
    """Yield a folder and those around it, on its file system."""
    device = os.stat(f"{folder}/.").st_dev  # noqa: PTH116 - fails where the folder cannot be looked into
    for root in (folder, *folder.parents):
        if root.stat().st_dev != device:
            return
        yield root


def _check_owner(mark: Path, folder: Path) -> None:
    """Refuse a repository that somebody else has put around a folder: its index would say what is sent.

    Raises:
        GitError: it belongs neither to this user, nor to root, nor to the folder's owner.
    """
    if mark.lstat().st_uid not in {0, os.geteuid(), folder.stat().st_uid}:
        raise GitError(
            f"{mark} belongs to another user than {folder}. Run `git init` in {folder} if it is a project of "
            "its own, or give both to one user (chown)."
        )


def _is_git_folder(path: Path) -> bool:
    places = (path / "objects").is_dir() and (path / "refs").is_dir()
    return os.path.lexists(path / "HEAD") and (places or (path / "commondir").is_file())


def _named_in(mark: Path) -> Path:
    """Return the git folder that a `.git` file names: of a worktree or a submodule."""
    word, _, target = _line(mark).partition(": ")
    folder = mark.parent / target
    if word != "gitdir" or not target or not _is_git_folder(folder):
        raise GitError(
            f"{mark} names no repository that is there ({target or word!r}). `git worktree repair` or `git "
            "submodule update` may mend it; move the file away if it is not yours."
        )
    return folder.resolve()


def _common(repository: Path) -> Path:
    """Return where a repository keeps what its worktrees share."""
    if not os.path.lexists(repository / "commondir"):
        return repository
    common = (repository / _line(repository / "commondir")).resolve()
    if not _is_git_folder(common):
        raise GitError(f"{repository}/commondir names no repository that is there ({common}).")
    return common


def _line(file: Path) -> str:
    text = os.fsdecode(read_regular(file, 8192, follow=True).data).rstrip("\n")
    if not text.isprintable():
        raise GitError(f"{file} is not as git writes it.")
    return text


def _borrow(view: Path, repository: Path, common: Path) -> None:
    """Let a view see a repository's index, commits and excludes."""
    for source, name, limit in (
        (repository, "index", _MAX_INDEX_BYTES),
        (repository, "HEAD", _MAX_TEXT_BYTES),
        (common, "info/exclude", _MAX_TEXT_BYTES),
    ):
        if not os.path.lexists(source / name):
            continue
        written_ns = (source / name).stat().st_mtime_ns
        data = read_regular(source / name, limit + 1, follow=True).data
        if len(data) > limit:
            raise GitError(f"{source / name} is larger than {limit:,} bytes.")
        (view / name).write_bytes(data)
        # Git looks again into files that are no older than the index, whatever it noted of them.
        os.utime(view / name, ns=(written_ns, written_ns))
    for name in ("objects", "refs"):
        (view / name).rmdir()
        (view / name).symlink_to(common / name)
    (view / "packed-refs").symlink_to(common / "packed-refs")
    for shared in islice(repository.glob("sharedindex.*"), _SHARED_INDEXES):
        (view / shared.name).symlink_to(shared)


def _run(command: list[str], *, cwd: Path, env: dict[str, str], stdin: bytes = b"") -> Answer:
    git = find_git()
    if git is None:
        raise GitError("git is not installed.")
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        try:
            done = subprocess.run(
                [git, *command],
                cwd=cwd,
                env=inherited(without="GIT_") | {"PATH": absolute_path()} | env,
                stdin=given,
                stdout=out,
                stderr=err,
                timeout=_LIMIT_S,
                check=False,
                preexec_fn=_bound,
            )
        except subprocess.TimeoutExpired:
            raise GitError(f"git {command[0]} did not end within {_LIMIT_S} s in {cwd}.") from None
        return Answer(done.returncode, _written(out, command[0]), _written(err, command[0]))


def _bound() -> None:
    """Limit a process that is about to become git: memory, what it writes, and that it starts no other."""
    for kind, limit in (
        (resource.RLIMIT_AS, _MAX_MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, _MAX_WRITTEN_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        with suppress(ValueError, OSError):  # a lower one is set already, or the system knows no such limit
            resource.setrlimit(kind, (limit, limit))


def _written(file: IO[bytes], command: str) -> bytes:
    file.seek(0)
    data = file.read(_MAX_OUTPUT_BYTES + 1)
    if len(data) > _MAX_OUTPUT_BYTES:
        raise GitError(f"git {command} has more to say than {_MAX_OUTPUT_BYTES:,} bytes.")
    return data
