"""A folder as `plan_execute` takes it: a map of texts, or an archive."""

import codecs
import io
import os
import posixpath
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NoReturn

from agent.cli.folder import Content, Folder, Kind, has_controls, not_utf8, refused_name
from agent.cli.git import GitError
from agent.cli.listing import listed

MAX_BYTES = 1_000_000
"""What the graph accepts in its input, in bytes of UTF-8 text."""
MAX_ARCHIVE_BYTES = 50_000_000
"""What a server takes as an archive."""
_MAX_UNPACKED_BYTES = 300_000_000  # as the server has it

MAX_FILES = 10_000
"""What the graph accepts in its input, in files."""
_MAX_ARCHIVED_FILES = 20_000  # as the server has it

_OUT = "a link out of the folder"
_REASONS: Mapping[Kind, str] = {
    "file": "",
    "link": "",
    "behind a link": "behind a link",
    "missing": "deleted, or not checked out",  # and still in git's index
    "not a file": "not a file",  # a FIFO
}


class PackError(Exception):
    """The folder cannot be sent; nothing was."""


class _TooLargeError(PackError):
    """No archive can hold it."""


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

    Git decides what counts, in a repository or not: what it tracks, and what .gitignore files and the user's
    own excludes let through. `.env` files (they hold keys), links that lead out of the folder, what lies
    behind links, and names with control characters are left out. Files that no text can hold (binary, in
    another encoding, links, names that are not UTF-8, executables that are no scripts) need an archive; they
    are left out only where the whole is too large for one. Nothing is read that is not in the folder, and
    nothing that the folder names is run.

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
        names, left_out = _names(path)
        found: dict[str, _Entry] = {}
        for name in names:
            entry = _looked_at(folder, name)
            if isinstance(entry, str):
                left_out[name] = entry
            else:
                found[name] = entry
        if not found:
            raise PackError(f"{path} has no files to send{_why_none(path, _shown(left_out))}.")
        texts, others = ({}, {}) if archived else _texts(folder, found)
        if not archived and not others:
            return Packed(texts, _shown(left_out), names=tuple(texts))
        try:
            return Packed({}, _shown(left_out), _tar(folder, found), tuple(found))
        except _TooLargeError:
            if not texts:
                raise
        return Packed(texts, _shown(left_out | others), names=tuple(texts))


def _why_none(path: Path, left_out: Mapping[str, str]) -> str:
    if not left_out:
        return ": git ignores all that is in it" if any(path.iterdir()) else ""
    return f". Left out: {', '.join(f'{name} ({why})' for name, why in islice(left_out.items(), 3))}"


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file or link to be sent."""

    size: int
    target: str | None = None
    """Where it points, if it is a link."""


def _looked_at(folder: Folder, name: str) -> _Entry | str:
    """Return what a name is, or the reason why it is not sent in any form."""
    if has_controls(name):
        return "its name has control characters"
    last = PurePosixPath(name).name
    if last == ".env" or (last.startswith(".env.") and last != ".env.example"):
        return "may hold keys"
    try:
        kind, size = folder.kind(name)
        if kind != "link":
            return _REASONS[kind] or _Entry(size)
        target = folder.target(name)
    except OSError as exc:
        _refuse_to_read(name, exc)
    ends = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    return _OUT if target.startswith("/") or (ends != "." and refused_name(ends)) else _Entry(0, target)


def _texts(folder: Folder, found: Mapping[str, _Entry]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files that a map of texts can hold, and the others with the reason.

    No texts are returned where there are too many for the graph's input.
    """
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    room = MAX_BYTES
    for name, entry in found.items():
        content = Content(b"") if entry.target is not None else _read(folder, name, room + 1)
        whole = len(content.data) <= room
        reason = "a link" if entry.target is not None else _no_text(name, content, whole=whole)
        if reason:
            others[name] = f"{reason}, and all is too large for an archive"
            continue
        room -= len(content.data)
        if room < 0 or len(texts) == MAX_FILES:
            return {}, {name: "too much text"}
        texts[name] = content.data.decode("utf-8")
    return texts, others


def _no_text(name: str, content: Content, *, whole: bool) -> str:
    """Return why a file cannot be sent as text; empty when it can.

    Args:
        name: of the file.
        content: what was read of it.
        whole: that is all of it.
    """
    if not_utf8(name):
        return "its name is not UTF-8"
    if b"\0" in content.data:
        return "binary"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content.data, final=whole)
    except UnicodeDecodeError:
        return "not UTF-8 text"
    # The graph makes scripts executable, and knows of no others.
    return "executable" if content.executable and not content.data.startswith(b"#!") else ""


def _tar(folder: Folder, found: Mapping[str, _Entry]) -> bytes:
    if sum(entry.size for entry in found.values()) > _MAX_UNPACKED_BYTES or len(found) > _MAX_ARCHIVED_FILES:
        raise _TooLargeError(_too_large(folder, found))
    room = _MAX_UNPACKED_BYTES
    # What unpacks it takes a folder around all of it away: that must not be one of the project's.
    tops = {name.partition("/")[0] for name in found}
    around = "project/" if len(tops) == 1 and not tops <= found.keys() else ""
    file = io.BytesIO()
    with tarfile.open(
        fileobj=file,
        mode="w:gz",
        compresslevel=6,
        format=tarfile.GNU_FORMAT,
        encoding="utf-8",
        errors="surrogateescape",
    ) as archive:
        for name, entry in found.items():
            info = tarfile.TarInfo(around + name)
            if entry.target is not None:
                info.type, info.linkname = tarfile.SYMTYPE, entry.target
                archive.addfile(info)
                continue
            content = _read(folder, name, room + 1)
            room -= len(content.data)
            if room < 0:  # it has grown since
                raise _TooLargeError(_too_large(folder, found))
            info.size = len(content.data)
            info.mode = 0o755 if content.executable else 0o644
            archive.addfile(info, io.BytesIO(content.data))
    if len(file.getvalue()) > MAX_ARCHIVE_BYTES:
        raise _TooLargeError(_too_large(folder, found))
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


def _too_large(folder: Folder, found: Mapping[str, _Entry]) -> str:
    largest = sorted(found, key=lambda name: found[name].size, reverse=True)[:3]
    named = ", ".join(f"{name} ({found[name].size:,} bytes)" for name in largest)
    return (
        f"{folder.path} is too large: at most {MAX_ARCHIVE_BYTES:,} bytes can be sent, "
        f"{_MAX_UNPACKED_BYTES:,} before they are compressed, in {_MAX_ARCHIVED_FILES:,} files; it has "
        f"{len(found):,}. The largest: {named}. Name a smaller folder, or list files in .gitignore."
    )


def _names(path: Path) -> tuple[list[str], dict[str, str]]:
    """Return the names of the files that count, sorted, and what is passed over with the reason.

    Raises:
        PackError: one leads out of the folder, or into git's own.
    """
    names, passed_over = listed(path)
    for name in sorted(names):
        if why := refused_name(name):
            raise PackError(
                f"Nothing was sent: git's index lists {name!r}, which {why}. Git itself writes no such name: "
                f"find out where {path} comes from before you run git in it."
            )
    return sorted(names), passed_over
