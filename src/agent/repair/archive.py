"""Checking an uploaded archive before it goes anywhere."""

import io
import posixpath
import tarfile
import zipfile
from collections.abc import Iterator

from agent.errors import InputError
from agent.repair.plan import file_and_folder, too_long

MAX_ARCHIVE_BYTES = 50_000_000
MAX_UNPACKED_BYTES = 300_000_000
MAX_FILES = 20_000


def check_archive(data: bytes) -> int:
    """Return how many files a tar (compressed or not) or zip archive holds.

    It is read in memory and unpacked only in the sandbox. Takes seconds for a large one: call it in a thread.

    Raises:
        InputError: it is none, is empty or too large, or holds something that does not belong in a project.
    """
    if len(data) > MAX_ARCHIVE_BYTES:
        raise InputError(f"the archive has {len(data)} bytes; at most {MAX_ARCHIVE_BYTES} can be uploaded")
    files: list[str] = []
    room = MAX_UNPACKED_BYTES
    try:
        for name, size in _zipped(data) if zipfile.is_zipfile(io.BytesIO(data)) else _tarred(data):
            if name.startswith("/") or ".." in name.split("/") or "\0" in name:
                raise InputError(f"the archive holds {name!r}, which leads out of the project")
            path = posixpath.normpath(name)
            if problem := too_long(path):
                raise InputError(f"the archive cannot be unpacked: {problem}")
            files.append(path)
            room -= size
            if room < 0 or len(files) > MAX_FILES:
                raise InputError(
                    f"the archive unpacks to more than {MAX_UNPACKED_BYTES} bytes or {MAX_FILES} files"
                )
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as exc:
        raise InputError(f"that is no tar or zip archive, or a broken one: {exc}") from None
    if not files:
        raise InputError("the archive is empty")
    if both := file_and_folder(files):
        raise InputError(f"the archive has {both[0]!r} both as a file and as a folder, in {both[1]!r}")
    return len(files)


def _zipped(data: bytes) -> Iterator[tuple[str, int]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            if entry.flag_bits & 1:
                raise InputError(f"the archive holds {entry.filename!r} encrypted")
            if not entry.is_dir():
                yield entry.filename, entry.file_size


def _tarred(data: bytes) -> Iterator[tuple[str, int]]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as archive:
        for entry in archive:
            if entry.isdir():
                continue
            if entry.issym() or entry.islnk():
                folder = posixpath.dirname(entry.name) if entry.issym() else ""
                target = posixpath.normpath(posixpath.join(folder, entry.linkname))
                if target.startswith(("/", "../")) or target == "..":
                    raise InputError(f"the archive holds a link out of the project, {entry.name!r}")
            elif not entry.isfile():
                raise InputError(f"the archive holds {entry.name!r}, which is no file, folder or link")
            yield entry.name, entry.size
