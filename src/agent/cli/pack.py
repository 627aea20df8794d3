"""A folder as `plan_execute` takes it: a map of texts, or an archive."""

import io
import os
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NoReturn

from agent.cli.folder import STAGE, Content, Folder, Kind, refused_name, unsendable_name
from agent.cli.git import Git, GitError, find_git, in_repository

MAX_BYTES = 1_000_000
"""What the graph accepts in its input, in bytes of UTF-8 text."""
MAX_ARCHIVE_BYTES = 50_000_000
"""What a server takes as an archive."""
_MAX_UNPACKED_BYTES = 300_000_000  # as the server has it
_PEEKED = 8000

_NEVER = frozenset(
    {".git", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".pytest_cache", STAGE}
)
_REASONS: Mapping[Kind, str] = {
    "file": "",
    "link": "a link",
    "behind a link": "behind a link",
    "missing": "not a file",  # deleted but still in git's index
    "not a file": "not a file",  # a submodule, a FIFO
}


class PackError(Exception):
    """The folder cannot be sent; nothing was."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The files to send, and those left out with the reason."""

    project: dict[str, str]
    left_out: dict[str, str]
    archive: bytes = b""
    """All of it as a compressed tar file, binary files too; then `project` is empty."""
    names: tuple[str, ...] = ()
    """The files that are sent."""

    @property
    def count(self) -> int:
        """How many are sent."""
        return len(self.names)

    @property
    def size(self) -> int:
        """Bytes of text, or of the archive."""
        return len(self.archive) or sum(len(text.encode()) for text in self.project.values())


def pack(folder: Path, *, archived: bool = False) -> Packed:
    """Read a folder's files: as texts, or as an archive when that is wanted or they are too large for it.

    Git decides what counts, in a repository or not: .gitignore files and the user's own excludes are
    honoured. Without git installed, hidden files and well-known folders are passed over instead. Links and
    what lies behind them, names that are not UTF-8 or have control characters, and `.env` files (they hold
    keys) are left out, and binary files where no archive is made. Nothing is read that is not in the folder,
    and nothing that the folder names is run.

    Args:
        folder: the project.
        archived: make an archive in any case.

    Raises:
        PackError: no such folder, one or a file that cannot be read, git's index names a file outside of it,
            nothing to send, or more than `MAX_ARCHIVE_BYTES`.
    """
    try:
        return _pack(folder, archived)
    except GitError as exc:
        raise PackError(f"Nothing was sent: {exc}") from exc
    except OSError as exc:
        where = Path(os.fsdecode(exc.filename or folder))
        name = where.relative_to(folder) if where != folder and where.is_relative_to(folder) else where
        raise PackError(f"{name} cannot be read: {exc.strerror}") from exc


def _pack(path: Path, archived: bool) -> Packed:
    if not path.is_dir():
        raise PackError(f"{path} is no folder.")
    with Folder(path) as folder:
        names = _names(path)
        left_out: dict[str, str] = {}
        sizes: dict[str, int] = {}
        for name in names:
            reason, size = _looked_at(folder, name)
            if reason:
                left_out[name] = reason
            else:
                sizes[name] = size
        texts = None if archived else _texts(folder, list(sizes))
        if texts is not None:
            project, binary = texts
            if not project:
                raise PackError(f"{path} has no text files to send.")
            return Packed(project, _shown(left_out | binary), names=tuple(project))
        if not sizes:
            raise PackError(f"{path} has no files to send.")
        return Packed({}, _shown(left_out), _tar(folder, sizes), tuple(sizes))


def _looked_at(folder: Folder, name: str) -> tuple[str, int]:
    """Return why a file is not sent in any form, and its size; the reason is empty when it is."""
    if reason := unsendable_name(name):
        return reason, 0
    last = PurePosixPath(name).name
    if last == ".env" or (last.startswith(".env.") and last != ".env.example"):
        return "may hold keys", 0
    try:
        kind, size = folder.kind(name)
    except OSError as exc:
        _refuse_to_read(name, exc)
    return _REASONS[kind], size


def _texts(folder: Folder, names: list[str]) -> tuple[dict[str, str], dict[str, str]] | None:
    """Return the files that are text, and the others with the reason; None when it is too much text."""
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    room = MAX_BYTES
    for name in names:
        data = _read(folder, name, room + 1).data
        if b"\0" in data[:_PEEKED]:  # as git tells a binary file
            others[name] = "binary"
            continue
        if len(data) > room:
            return None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            others[name] = "not UTF-8 text"
            continue
        if "\0" in text:
            others[name] = "binary"
        else:
            texts[name] = text
            room -= len(data)
    return texts, others


def _tar(folder: Folder, sizes: Mapping[str, int]) -> bytes:
    if sum(sizes.values()) > _MAX_UNPACKED_BYTES:
        raise PackError(_too_large(folder, sizes))
    room = _MAX_UNPACKED_BYTES
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as archive:
        for name in sizes:
            content = _read(folder, name, room + 1)
            room -= len(content.data)
            if room < 0:  # it has grown since
                raise PackError(_too_large(folder, sizes))
            entry = tarfile.TarInfo(name)
            entry.size = len(content.data)
            entry.mode = 0o755 if content.executable else 0o644
            archive.addfile(entry, io.BytesIO(content.data))
    if len(file.getvalue()) > MAX_ARCHIVE_BYTES:
        raise PackError(_too_large(folder, sizes))
    return file.getvalue()


def _read(folder: Folder, name: str, limit: int) -> Content:
    try:
        return folder.read(name, limit)
    except OSError as exc:
        _refuse_to_read(name, exc)


def _refuse_to_read(name: str, exc: OSError) -> NoReturn:
    raise PackError(f"{name} cannot be read: {exc.strerror}") from exc


def _shown(left_out: dict[str, str]) -> dict[str, str]:
    """Write names so that they can be shown, whatever bytes they are made of."""
    return {path.encode("utf-8", "backslashreplace").decode(): why for path, why in left_out.items()}


def _too_large(folder: Folder, sizes: Mapping[str, int]) -> str:
    largest = sorted(sizes, key=lambda name: sizes[name], reverse=True)[:3]
    named = ", ".join(f"{name} ({sizes[name]:,} bytes)" for name in largest)
    return (
        f"{folder.path} is too large: at most {MAX_ARCHIVE_BYTES:,} bytes can be sent, "
        f"{_MAX_UNPACKED_BYTES:,} before they are compressed. The largest files: {named}. Name a smaller "
        "folder, or list files in .gitignore."
    )


def _names(path: Path) -> list[str]:
    """Return the names of the files that count, sorted.

    Raises:
        PackError: one leads out of the folder, or into git's own.
    """
    listed = sorted(
        {name.removesuffix("/") for name in (_walk(path) if find_git() is None else _listed(path))}
    )
    for name in listed:
        if why := refused_name(name):
            raise PackError(
                f"Nothing was sent: git's index lists {name!r}, which {why}. Git itself writes no such name: "
                f"find out where {path} comes from before you run git in it."
            )
    return [name for name in listed if not _NEVER & set(PurePosixPath(name).parts)]


def _listed(path: Path) -> list[str]:
    with in_repository(path) as git:
        answer = git.run("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".")
        if answer.returncode != 0:
            raise GitError(f"git cannot list the files of {path}: {answer.said}")
        if answer.stderr:  # it passes over what it cannot read, with a warning
            _refuse_unreadable(git)
        return answer.names


def _refuse_unreadable(git: Git) -> None:
    """Raise the error of the first folder that cannot be read, unless git would not look into it anyway."""
    errors: dict[str, OSError] = {}

    def keep(error: OSError) -> None:
        errors[os.path.relpath(error.filename, git.folder)] = error

    for _, folders, _ in os.walk(git.folder, onerror=keep):
        folders[:] = [name for name in folders if name not in _NEVER]
    if not errors:
        return
    asked = b"".join(os.fsencode(name) + b"\0" for name in errors)
    answer = git.run("check-ignore", "-z", "--stdin", stdin=asked)
    ignored = answer.names if answer.returncode == 0 else []
    for name, error in errors.items():
        if name not in ignored:
            raise error


def _walk(path: Path) -> Iterator[str]:
    """Yield the files of a folder, for want of git: without hidden ones and well-known folders."""

    def refuse(error: OSError) -> NoReturn:
        raise error

    for at, folders, files in os.walk(path, onerror=refuse):
        seen = [name for name in folders if not name.startswith(".") and name not in _NEVER]
        folders[:] = [name for name in seen if not Path(at, name).is_symlink()]
        for name in [*files, *(set(seen) - set(folders))]:
            if not name.startswith("."):
                yield Path(at, name).relative_to(path).as_posix()
