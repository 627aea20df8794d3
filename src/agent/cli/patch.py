"""Put a repair's diff into the folder it came from.

Git applies the diff in a scratch folder, to copies of the files it changes, and what comes of it replaces
those in the user's folder. So git follows no link and heeds no attribute there, and the diff applies to the
bytes that were sent, with which it was made.
"""

import fnmatch
import os
import re
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from agent.cli.folder import STAGE, Content, Folder, has_controls, read_regular, refused_name
from agent.cli.git import Answer, Git, GitError, in_repository, outside
from agent.repair.ignoring import folders_of

_NAMED = 5
_MAX_BYTES = 300_000_000

# A line of a file begins with a blank, a sign or a backslash; so these are headers.
_NOT_OURS = re.compile(
    r"^(?:(?:rename|copy) (?:from|to|old|new) |"
    r"(?:(?:new|old|deleted) (?:file )?mode|index \S+) (?!100644$|100755$))",
    re.MULTILINE,
)
_BECOMES_EXECUTABLE = re.compile(r"^new (?:file )?mode 100755$", re.MULTILINE)
_STARTED_BY_OTHERS = (
    ".gitattributes", ".gitmodules", ".gitconfig", ".lfsconfig", ".githooks/*", ".husky/*", ".envrc",
    ".pre-commit-config.yaml", ".vscode/*", ".idea/*", ".devcontainer/*", ".devcontainer.json", ".github/*",
    ".gitlab-ci.yml", ".circleci/*", ".npmrc", ".yarnrc*", ".yarn/*", "mise.toml", ".mise.toml",
    ".tool-versions", "sitecustomize.py", "usercustomize.py", "*.pth", ".claude/*", ".cursor/*", ".mcp.json",
)  # fmt: skip


class PatchError(Exception):
    """The diff was not applied; the folder is as it was."""


def touched(diff: str) -> list[str]:
    """Return the files a diff changes, adds or deletes, sorted; never none.

    Raises:
        PatchError: git is missing, or cannot read the diff, or finds no file in it; or it does what no repair
            does: it renames, makes links, or leaves the folder.
    """
    if found := _NOT_OURS.search(diff):
        line = diff[found.start() :].partition("\n")[0]
        raise PatchError(f"The changes are not those of a repair, and were not applied: {line!r}")
    try:
        with tempfile.TemporaryDirectory(prefix="sandbox-agent-") as scratch, outside(Path(scratch)) as git:
            done = _apply(git, "--numstat", diff=diff)
    except GitError as exc:
        raise PatchError(f"The changes cannot be read: {exc}") from exc
    if done.returncode != 0:
        raise PatchError(f"The changes cannot be read: {done.said}")
    names = sorted({name.split("\t", 2)[2] for name in done.names})
    if not names:
        raise PatchError("git finds no file in the changes; nothing was changed.")
    for name in names:
        ours = "is where changes are put together" if name.split("/")[0].casefold() == STAGE else ""
        controls = "its name has control characters" if has_controls(name) else ""
        if why := refused_name(name) or controls or ours:
            raise PatchError(f"The changes were not applied: {name!r}: {why}.")
    return names


def cautions(diff: str, names: Sequence[str]) -> list[str]:
    """Return what a human should know before a diff is applied, a sentence each: what it has others start.

    Args:
        diff: the changes.
        names: of the files they touch.
    """
    said = []
    if found := [name for name in names if _starts_by_itself(name)]:
        said.append(f"Git, editors or shells act on {', '.join(found)} unasked: look at the changes.")
    if _BECOMES_EXECUTABLE.search(diff):
        said.append("The changes make files executable.")
    return said


def _starts_by_itself(name: str) -> bool:
    parts = name.casefold().split("/")
    tails = ["/".join(parts[start:]) for start in range(len(parts))]
    return any(fnmatch.fnmatchcase(tail, pattern) for tail in tails for pattern in _STARTED_BY_OTHERS)


def apply(diff: str, folder: Path, *, force: bool = False, sent: Collection[str] | None = None) -> list[str]:
    """Apply a unified diff to a folder, all of it or nothing.

    Args:
        diff: paths relative to `folder`.
        folder: where to apply it; in a repository or not, its root or not.
        force: also over uncommitted changes.
        sent: the files that may be changed, beside new ones; default all. Of others, what git ignores stays
            as it is, see `kept_as_they_are`.

    Returns:
        The files that were changed, added or deleted, relative to `folder`, sorted.

    Raises:
        PatchError: git is missing, files to change have uncommitted changes or were not sent, or the diff
            does not fit.
    """
    names = touched(diff)
    kept = {name for name in kept_as_they_are(folder, names) if sent is None or name not in sent}
    names, all_names = [name for name in names if name not in kept], names
    if not force and (changed := uncommitted(folder, names)):
        raise PatchError(
            f"Not applied over uncommitted changes in {', '.join(changed)}: commit them, or give --force."
        )
    try:
        with Folder(folder) as place:
            place.refuse_half_done()
            before = _read(place, names)
            if sent is not None and (others := [name for name in names if before[name] and name not in sent]):
                raise PatchError(f"Not applied: {', '.join(others)} would change, and was not sent.")
            after = _applied(diff, {name: before.get(name) for name in all_names})
            place.replace({name: after[name] for name in names}, before)
    except OSError as exc:
        raise PatchError(f"Not applied: {exc.filename or folder} cannot be written: {exc.strerror}") from exc
    except GitError as exc:
        raise PatchError(f"Not applied: {exc}") from exc
    return names


def _read(place: Folder, names: Sequence[str]) -> dict[str, Content | None]:
    """Read what files hold now; None where there is none.

    Raises:
        PatchError: one is no file, or lies behind a link, or they are too large.
    """
    room = _MAX_BYTES
    found: dict[str, Content | None] = {}
    for name in names:
        kind, _ = place.kind(name)
        if kind == "not a file" and any(other.startswith(f"{name}/") for other in names):
            kind = "missing"  # a folder that may be gone by then
        if kind not in {"file", "missing"}:
            raise PatchError(f"Not applied: {name} is {kind if kind != 'link' else 'a link'}.")
        content = found[name] = place.read(name, room + 1) if kind == "file" else None
        room -= len(content.data) if content else 0
        if room < 0:
            raise PatchError(f"Not applied: the files to change have more than {_MAX_BYTES:,} bytes.")
    return found


def _applied(diff: str, before: dict[str, Content | None]) -> dict[str, Content | None]:
    """Return what files hold once a diff is applied to them."""
    with tempfile.TemporaryDirectory(prefix="sandbox-agent-") as made:
        scratch = Path(made)
        for name, content in before.items():
            if content is not None:
                copy = scratch / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content.data)
                copy.chmod(0o755 if content.executable else 0o644)
        with outside(scratch) as git:
            done = _apply(git, diff=diff)
        if done.returncode != 0:
            raise PatchError(f"The changes do not fit the files as they are now: {done.said}")
        return {name: _result(scratch / name) for name in before}


def _result(path: Path) -> Content | None:
    try:
        content = read_regular(path, _MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except (NotADirectoryError, IsADirectoryError):
        return None  # a file came where its folder was, or the other way round
    if len(content.data) > _MAX_BYTES:
        raise PatchError(f"Not applied: {path.name} would have more than {_MAX_BYTES:,} bytes.")
    return Content(content.data, 0o777 if content.executable else 0o666)


def refuse_uncommitted(folder: Path, paths: Collection[str]) -> None:
    """Refuse a repair that is to be applied to files with uncommitted changes, before it begins.

    Args:
        folder: where the changes are to be applied.
        paths: what is sent, and may so be changed.

    Raises:
        PatchError: git is missing or cannot tell, or some of the files have uncommitted changes, or another
            change is under way.
    """
    try:
        with Folder(folder) as place:
            place.refuse_half_done()
    except OSError as exc:
        raise PatchError(f"Nothing was sent: {exc.filename} cannot be written: {exc.strerror}.") from exc
    if changed := uncommitted(folder, paths):
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        raise PatchError(
            f"Nothing was sent: --apply would change {folder}, and there are uncommitted changes in "
            f"{', '.join(changed[:_NAMED])}{more}. Commit them, leave out --apply, or give --force."
        )


def uncommitted(folder: Path, paths: Collection[str]) -> list[str]:
    """Return which of the files differ from the last commit; none outside of a repository.

    No filter runs, such as git-lfs: a file of a filter's counts as changed where its size or times are not
    those that git noted when it wrote it.

    A file that git was told to take for unchanged is compared, too, where it is there. A submodule's are
    compared with its own last commit.

    Args:
        folder: what the paths are relative to.
        paths: names of files.

    Raises:
        PatchError: git is missing, or cannot tell.
    """
    changed: list[str] = []
    try:
        for root, names in _by_repository(folder, paths).items():
            changed += [f"{root}{name}" for name in _changed(folder / root) & names]
    except (GitError, OSError) as exc:
        raise PatchError(
            f"Whether there are uncommitted changes in {folder} cannot be told ({exc}): nothing was changed. "
            "Commit them, and give --force."
        ) from exc
    return sorted(changed)


def _by_repository(folder: Path, paths: Collection[str]) -> dict[str, set[str]]:
    """Return paths by the submodule they lie in, relative to it; most lie in none, which is empty.

    A submodule's name ends with a slash.
    """
    roots = {
        root for root in {root for path in paths for root in folders_of(path)} if _is_root(folder / root)
    }
    found: dict[str, set[str]] = {}
    for path in paths:
        root = next((f"{root}/" for root in reversed(folders_of(path)) if root in roots), "")
        found.setdefault(root, set()).add(path.removeprefix(root))
    return found


def _is_root(folder: Path) -> bool:
    return os.path.lexists(folder / ".git")


def _changed(folder: Path) -> set[str]:
    options = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all")
    with in_repository(folder) as git:
        if git.hidden_commits:
            raise GitError(git.hidden_commits)
        if git.common is None:
            return set()
        _look_at_all(git)
        # All of the folder is asked about: thousands of paths do not fit on a command line.
        done = git.run("status", *options, "--", ".")
        if done.returncode != 0:
            raise GitError(f"{git.root}: {done.said}")
        # Each entry begins with two letters and a blank, and is relative to the root.
        return {name[3:].removeprefix(git.prefix) for name in done.names}


def kept_as_they_are(folder: Path, names: Sequence[str]) -> list[str]:
    """Return which of the files are there and are ignored by git: the user's own, and no part of the project.

    The rules of folders above, and of the user, are known here alone: a repair may have made such files.

    Raises:
        PatchError: git is missing, or cannot tell.
    """
    try:
        with Folder(folder) as place:
            there = [name for name in names if place.kind(name)[0] == "file"]
        return sorted(
            f"{root}{name}"
            for root, inner in _by_repository(folder, there).items()
            for name in _ignored(folder / root, inner)
        )
    except (GitError, OSError) as exc:
        raise PatchError(
            f"Which files git ignores in {folder} cannot be told ({exc}): nothing was changed."
        ) from exc


def _ignored(folder: Path, names: Collection[str]) -> list[str]:
    with in_repository(folder) as git:
        # A name that begins with a colon would be git's magic.
        asked = b"".join(os.fsencode(f"./{name}") + b"\0" for name in names)
        done = git.run("check-ignore", "-z", "--stdin", stdin=asked)
    if done.returncode not in {0, 1}:
        raise GitError(done.said)
    return [name.removeprefix("./") for name in done.names]


def _look_at_all(git: Git) -> None:
    """Take from the view's copy of the index what keeps `git status` from looking at files that are there.

    Raises:
        GitError: git did not.
    """
    listed = git.run("ls-files", "-v", "-z", "--", ".")
    # `h` and `s`: assumed unchanged; `S` and `s`: not wanted in a sparse checkout.
    told = [
        entry[2:] for entry in listed.names if entry[0] in "hsS" and os.path.lexists(git.folder / entry[2:])
    ]
    asked = b"".join(os.fsencode(name) + b"\0" for name in told)
    for option in ("--no-assume-unchanged", "--no-skip-worktree") if told else ():
        done = git.run("update-index", option, "-z", "--stdin", stdin=asked)
        if done.returncode != 0:
            raise GitError(done.said)


def _apply(git: Git, *options: str, diff: str) -> Answer:
    try:
        data = diff.encode()
    except UnicodeEncodeError as exc:  # JSON can name halves of characters
        raise PatchError("The changes cannot be read: they are no text.") from exc
    return git.run("apply", "-z", "--whitespace=nowarn", *options, "-", stdin=data)
