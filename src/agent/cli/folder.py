"""A folder that may be hostile: its files are read and replaced without ever leaving it.

A name that was checked a moment ago may be a link by now. So nothing is opened by its path: each part of a
name is opened from the folder it stands in, and a link is never followed.
"""

import errno
import os
import re
import secrets
import shutil
import signal
import stat
import threading
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

Kind = Literal["file", "link", "behind a link", "missing", "not a file"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking: opening a FIFO would wait for a writer that never comes.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20

STAGE = ".sandbox-agent-apply"
"""Where changes are put together, in the folder that they are for."""
_BEFORE, _AFTER = f"{STAGE}/before", f"{STAGE}/after"
_STAGE_IS_THERE = (
    "it is there already. Another --apply works in the folder, or one was killed: then `before` in it has "
    "the files as they were, and it can be moved away"
)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds."""

    data: bytes
    mode: int = 0o644

    @property
    def executable(self) -> bool:
        """Whether its owner may run it."""
        return bool(self.mode & 0o100)


def refused_name(name: str) -> str:
    """Return why a name is not one of a file in a folder, relative to it; empty when it may be.

    Git's own folder counts in every spelling that some file system takes for `.git`.
    """
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or "\0" in name:
        return "leads out of the folder"
    if any(part in {"", "."} for part in parts):
        return "is no name of a file"
    return "is in git's own folder" if any(map(_is_gits, parts)) else ""


def has_controls(name: str) -> bool:
    """Whether a name has characters that end or bend a line."""
    return bool(_CONTROLS.search(name))


def not_utf8(name: str) -> bool:
    """Whether a name has bytes that the system could only hand over as surrogates."""
    return any("\ud800" <= mark <= "\udfff" for mark in name)


def _is_gits(part: str) -> bool:
    # APFS and HFS+ ignore case and marks that cannot be seen; NTFS ignores case, dots and blanks at the end
    # and what follows a colon, and has short names.
    seen = "".join(mark for mark in part if unicodedata.category(mark) != "Cf").casefold()
    return seen.partition(":")[0].rstrip(". ") in {".git", "git~1"}


def read_regular(path: Path | str, limit: int, *, dir_fd: int | None = None, follow: bool = False) -> Content:
    """Read the beginning of a file that is one: no FIFO, device or folder.

    Args:
        path: of the file.
        limit: how many bytes are read at most.
        dir_fd: the open folder that the path is relative to.
        follow: also through a link.

    Raises:
        OSError: it cannot be read, or is no file.
    """
    descriptor = os.open(path, _FILE & ~os.O_NOFOLLOW if follow else _FILE, dir_fd=dir_fd)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "Not a file", str(path))
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        pieces: list[bytes] = []
        # Sizes are not believed: a file may grow while it is read.
        while limit > 0 and (piece := file.read(min(_CHUNK, limit))):
            pieces.append(piece)
            limit -= len(piece)
        return Content(b"".join(pieces), mode & 0o777)


class Folder:
    """An open folder; a context manager.

    Args:
        path: of the folder; it may be a link itself, since it is the user's word.

    Raises:
        OSError: it cannot be opened, or is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._root = os.open(path, _DIRECTORY & ~os.O_NOFOLLOW)
        self._last: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._forget()
        os.close(self._root)

    def kind(self, name: str) -> tuple[Kind, int]:
        """Return what a name is, and its size in bytes as the file system tells it.

        Raises:
            OSError: a folder on the way cannot be looked into.
        """
        parent, _, last = name.rpartition("/")
        try:
            found = os.stat(last, dir_fd=self._parent(parent), follow_symlinks=False)
        except FileNotFoundError:
            return "missing", 0
        except OSError as exc:
            if exc.errno not in {errno.ELOOP, errno.ENOTDIR}:
                raise
            return self._on_the_way(parent), 0
        if stat.S_ISREG(found.st_mode):
            return "file", found.st_size
        return ("link" if stat.S_ISLNK(found.st_mode) else "not a file"), 0

    def _on_the_way(self, parent: str) -> Kind:
        parts = parent.split("/")
        for end in range(1, len(parts) + 1):
            kind, _ = self.kind("/".join(parts[:end]))
            if kind in {"link", "behind a link"}:
                return "behind a link"
        return "missing"  # a file stands where a folder was

    def read(self, name: str, limit: int) -> Content:
        """Read the beginning of a file, at most `limit` bytes.

        Raises:
            OSError: it cannot be read, is no file, or lies behind a link.
        """
        parent, _, last = name.rpartition("/")
        return read_regular(last, limit, dir_fd=self._parent(parent))

    def target(self, name: str) -> str:
        """Return where a link points.

        Raises:
            OSError: it is none, or lies behind another one.
        """
        parent, _, last = name.rpartition("/")
        return os.readlink(last, dir_fd=self._parent(parent))

    def _parent(self, name: str) -> int:
        # Names come sorted: most follow one of the same folder.
        if not name:
            return self._root
        if self._last is None or self._last[0] != name:
            self._forget()
            self._last = (name, self._descend(name))
        return self._last[1]

    def _forget(self) -> None:
        if self._last is not None:
            os.close(self._last[1])
            self._last = None

    def _descend(self, name: str, made: list[str] | None = None) -> int:
        """Open a folder, part by part; with `made`, make what is missing and add its names to it."""
        at = os.dup(self._root)
        parts = name.split("/") if name else []
        try:
            for number, part in enumerate(parts, start=1):
                if made is not None:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=at)
                        made.append("/".join(parts[:number]))
                below = os.open(part, _DIRECTORY, dir_fd=at)
                os.close(at)
                at = below
        except BaseException:
            os.close(at)
            raise
        return at

    def refuse_half_done(self) -> None:
        """See that no change is under way here, and none was left in its midst.

        Raises:
            OSError: one is, or was.
        """
        if self.kind(STAGE)[0] != "missing":
            raise OSError(errno.EEXIST, _STAGE_IS_THERE, STAGE)

    def replace(self, changes: Mapping[str, Content | None], before: Mapping[str, Content | None]) -> None:
        """Write and delete files: all of them, or none.

        What takes time or room is done first, in a folder `STAGE` that is gone afterwards: new contents are
        written there, and what they replace is kept. Then each file is put into place by one rename; to take
        them back needs no room. A signal, such as Ctrl-C, waits meanwhile. Only a process that is killed
        between two renames leaves some done; the others, and all as they were, are then in `STAGE`.

        A folder that loses its last file is removed, as git does. A file that is there keeps its mode, except
        whether it may be run, and for root its owner.

        Args:
            changes: what each file shall hold; None deletes it.
            before: what they hold as far as the caller knows; None where there is no file.

        Raises:
            OSError: something cannot be written, or is not as in `before` any more, or `STAGE` is there; all
                is as it was, unless the same trouble kept a file from being put back.
        """
        with _signals_wait():
            self.refuse_half_done()
            os.mkdir(STAGE, 0o700, dir_fd=self._root)
            try:
                for name, content in changes.items():
                    if before[name] is not None:  # where none is, one may stand that is to be deleted first
                        self._check_unchanged(name, before[name])
                    self._prepare(name, content, before[name])
                self._put_into_place(changes, before)
            finally:
                self._forget()
                shutil.rmtree(STAGE, ignore_errors=True, dir_fd=self._root)

    def _prepare(self, name: str, content: Content | None, before: Content | None) -> None:
        """Write to `STAGE` what a file shall hold, and keep there what it holds."""
        owner = None
        if before is not None:
            with self._below(name) as (folder, last), self._below(f"{_BEFORE}/{name}", []) as (kept, _):
                found = os.stat(last, dir_fd=folder, follow_symlinks=False)
                owner = (found.st_uid, found.st_gid)
                try:
                    os.link(last, last, src_dir_fd=folder, dst_dir_fd=kept, follow_symlinks=False)
                except OSError:  # another file system, or one without hard links
                    _write_whole(kept, last, before.data, before.mode, owner)
        if content is not None:
            with self._below(f"{_AFTER}/{name}", []) as (folder, last):
                _write_whole(folder, last, content.data, _mode(content, before), owner)

    def _put_into_place(
        self, changes: Mapping[str, Content | None], before: Mapping[str, Content | None]
    ) -> None:
        done: list[str] = []
        made: list[str] = []
        try:
            for name in sorted(changes, key=lambda name: changes[name] is not None):  # deletions first
                self._check_unchanged(name, before[name])
                done.append(name)
                # Where a file is, its folder is; one that has gone meanwhile is not made anew.
                self._write(name, changes[name], _AFTER, made if before[name] is None else None)
        except BaseException:
            for name in reversed(done):
                with suppress(OSError):
                    self._write(name, before[name], _BEFORE, [] if changes[name] is None else None)
            self._remove_empty(reversed(made))
            raise

    def _write(self, name: str, content: Content | None, stage: str, made: list[str] | None) -> None:
        """Take a file from a folder of `STAGE`, or delete it."""
        with self._below(name, made) as (folder, last):
            if content is None:
                os.unlink(last, dir_fd=folder)
            else:
                with self._below(f"{stage}/{name}") as (ready, _):
                    _move(ready, folder, last)
        if content is None:
            parts = name.split("/")[:-1]
            self._remove_empty("/".join(parts[:end]) for end in range(len(parts), 0, -1))

    def _check_unchanged(self, name: str, before: Content | None) -> None:
        if before is None:
            if self.kind(name)[0] != "missing":
                raise OSError(errno.EEXIST, "It is there by now", name)
        elif self.read(name, len(before.data) + 1) != before:
            raise OSError(errno.EBUSY, "It has changed meanwhile", name)

    def _remove_empty(self, folders: Iterator[str]) -> None:
        self._forget()
        with suppress(OSError):  # the first that is not empty ends it
            for name in folders:
                with self._below(name) as (folder, last):
                    os.rmdir(last, dir_fd=folder)

    @contextmanager
    def _below(self, name: str, made: list[str] | None = None) -> Iterator[tuple[int, str]]:
        parent, _, last = name.rpartition("/")
        folder = self._descend(parent, made)
        try:
            yield folder, last
        finally:
            os.close(folder)


def _write_whole(
    folder: int, name: str, data: bytes, mode: int, owner: tuple[int, int] | None = None
) -> None:
    """Write a file so that it appears with all it holds, in place of what has the name, also of a link."""
    draft = f".{secrets.token_hex(8)}.draft"
    descriptor = os.open(draft, _DRAFT, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if owner is not None and os.geteuid() == 0:
                os.fchown(descriptor, *owner)
            os.fchmod(descriptor, mode)
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise


def _move(source: int, target: int, name: str) -> None:
    """Move a file to another folder, in place of what has its name there."""
    try:
        os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
    except OSError as exc:
        if exc.errno != errno.EXDEV:  # a file system that is mounted in the folder
            raise
        found = os.stat(name, dir_fd=source, follow_symlinks=False)
        content = read_regular(name, found.st_size, dir_fd=source)
        _write_whole(target, name, content.data, content.mode, (found.st_uid, found.st_gid))


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Let the signals that end a command take effect after the block."""
    came: list[int] = []
    known: dict[int, Any] = {}
    ends = (int(signal.SIGINT), int(signal.SIGTERM), int(signal.SIGHUP))
    if threading.current_thread() is threading.main_thread():  # no other may
        for signum in ends:
            known[signum] = signal.signal(signum, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for signum, handler in known.items():
            signal.signal(signum, handler or signal.SIG_DFL)  # None: it was not Python's
        for signum in came:
            signal.raise_signal(signum)


def _mode(content: Content, before: Content | None) -> int:
    if before is None:
        return content.mode & ~_umask()
    if content.executable == before.executable:
        return before.mode
    # Who may read may run it.
    return before.mode | (before.mode & 0o444) >> 2 if content.executable else before.mode & ~0o111


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
