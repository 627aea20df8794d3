"""A folder as `plan_execute` takes it: a map of texts, or an archive."""

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MAX_BYTES = 1_000_000
"""What the graph accepts in its input, in bytes of UTF-8 text."""
MAX_ARCHIVE_BYTES = 50_000_000
"""What a server takes as an archive."""
_MAX_UNPACKED_BYTES = 300_000_000  # as the server has it
_PEEKED = 8000

_NEVER = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".pytest_cache"})
_GIT_S = 60


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
    honoured. Without git installed, hidden files and well-known folders are passed over instead. Links,
    names that are not UTF-8 and `.env` files (they hold keys) are left out, and binary files where no archive
    is made.

    Args:
        folder: the project.
        archived: make an archive in any case.

    Raises:
        PackError: no such folder, one or a file that cannot be read, nothing to send, or more than
            `MAX_ARCHIVE_BYTES`.
    """
    try:
        return _pack(folder, archived)
    except OSError as exc:
        where = Path(os.fsdecode(exc.filename or folder))
        name = where.relative_to(folder) if where != folder and where.is_relative_to(folder) else where
        raise PackError(f"{name} cannot be read: {exc.strerror}") from exc


def _pack(folder: Path, archived: bool) -> Packed:
    if not folder.is_dir():
        raise PackError(f"{folder} is no folder.")
    paths = sorted(set(_paths(folder)))
    left_out = {path: reason for path in paths if (reason := _refused(folder / path, path))}
    sent = [path for path in paths if path not in left_out]
    texts = None if archived else _texts(folder, sent)
    if texts is not None:
        project, binary = texts
        if not project:
            raise PackError(f"{folder} has no text files to send.")
        return Packed(project, _shown(left_out | binary), names=tuple(project))
    if not sent:
        raise PackError(f"{folder} has no files to send.")
    return Packed({}, _shown(left_out), _tar(folder, sent), tuple(sent))


def _refused(path: Path, name: str) -> str:
    """Return why a file is not sent in any form; empty when it is."""
    if not _is_utf8(name):
        return "its name is not UTF-8"
    if path.is_symlink():
        return "a link"
    if path.name == ".env" or (path.name.startswith(".env.") and path.name != ".env.example"):
        return "may hold keys"
    if not path.is_file():  # deleted but still in git's index, or a submodule
        return "not a file"
    return ""


def _texts(folder: Path, paths: list[str]) -> tuple[dict[str, str], dict[str, str]] | None:
    """Return the files that are text, and the others with the reason; None when it is too much text."""
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    room = MAX_BYTES
    for path in paths:
        if b"\0" in _bytes(folder, path, _PEEKED):  # as git tells a binary file
            others[path] = "binary"
            continue
        data = _bytes(folder, path, room + 1)
        if len(data) > room:
            return None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            others[path] = "not UTF-8 text"
            continue
        if "\0" in text:
            others[path] = "binary"
        else:
            texts[path] = text
            room -= len(data)
    return texts, others


def _tar(folder: Path, paths: list[str]) -> bytes:
    if sum((folder / path).stat().st_size for path in paths) > _MAX_UNPACKED_BYTES:
        raise PackError(_too_large(folder, paths))
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as archive:
        for path in paths:
            data = _bytes(folder, path)
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            entry.mode = 0o755 if (folder / path).stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(data))
    if len(file.getvalue()) > MAX_ARCHIVE_BYTES:
        raise PackError(_too_large(folder, paths))
    return file.getvalue()


def _bytes(folder: Path, path: str, limit: int = -1) -> bytes:
    try:
        with (folder / path).open("rb") as file:
            return file.read(limit)
    except OSError as exc:
        raise PackError(f"{path} cannot be read: {exc.strerror}") from exc


def _shown(left_out: dict[str, str]) -> dict[str, str]:
    """Write names so that they can be shown, whatever bytes they are made of."""
    return {path.encode("utf-8", "backslashreplace").decode(): why for path, why in left_out.items()}


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes that git or the system could only hand over as surrogates
        return False
    return True


def _too_large(folder: Path, paths: list[str]) -> str:
    sizes = {path: (folder / path).stat().st_size for path in paths}
    largest = sorted(sizes, key=lambda path: sizes[path], reverse=True)[:3]
    named = ", ".join(f"{path} ({sizes[path]:,} bytes)" for path in largest)
    return (
        f"{folder} is too large: at most {MAX_ARCHIVE_BYTES:,} bytes can be sent, {_MAX_UNPACKED_BYTES:,} "
        f"before they are compressed. The largest files: {named}. Name a smaller folder, or list files in "
        ".gitignore."
    )


def _paths(folder: Path) -> Iterator[str]:
    git = shutil.which("git")
    if git is None:
        yield from _walk(folder, "")
        return
    listed = _git_ls_files(git, folder, [])
    if listed is None:  # no repository: one for the moment, elsewhere, applies the same rules
        with tempfile.TemporaryDirectory(prefix="sandbox-agent-") as elsewhere:
            subprocess.run([git, "init", "-q", "--bare", elsewhere], check=True, timeout=_GIT_S)
            listed = _git_ls_files(git, folder, [f"--git-dir={elsewhere}", f"--work-tree={folder.resolve()}"])
    for path in listed or []:
        if not _NEVER & set(PurePosixPath(path).parts):
            yield path


def _git_ls_files(git: str, folder: Path, where: list[str]) -> list[str] | None:
    command = [git, *where, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=_GIT_S, check=False)
    if done.returncode != 0:
        return None
    if done.stderr:  # it passes over what it cannot read, with a warning
        _refuse_unreadable(git, folder, where)
    return [path.decode("utf-8", "surrogateescape") for path in done.stdout.split(b"\0") if path]


def _refuse_unreadable(git: str, folder: Path, where: list[str]) -> None:
    """Raise the error of the first folder that cannot be read, unless git would not look into it anyway."""
    errors: list[OSError] = []
    for _, folders, _ in os.walk(folder, onerror=errors.append):
        folders[:] = [name for name in folders if name not in _NEVER]
    for error in errors:
        command = [git, *where, "check-ignore", "-q", "--", os.path.relpath(error.filename, folder)]
        if subprocess.run(command, cwd=folder, capture_output=True, timeout=_GIT_S, check=False).returncode:
            raise error


def _walk(folder: Path, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.name.startswith(".") or entry.name in _NEVER:
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}"
