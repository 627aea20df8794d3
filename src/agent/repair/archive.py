"""Archives that others packed: what an upload holds, checked before it goes anywhere, and reading a tar.

An archive tells its reader how much to read: a header's length, a list's. None of that is taken at its word.
"""

import bz2
import gzip
import io
import lzma
import posixpath
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from agent.errors import InputError
from agent.repair.plan import file_and_folder, too_long

MAX_ARCHIVE_BYTES = 50_000_000
MAX_UNPACKED_BYTES = 300_000_000
MAX_FILES = 20_000
MAX_ENTRIES = 2 * MAX_FILES
"""Files and folders."""

_MAX_HEADER_BYTES = 262_144
"""Of what stands before one entry of a tar: long names, attributes."""
_MAX_GLOBAL_HEADERS = 100
_MAX_DIRECTORY_BYTES = 8_000_000
"""Of a zip's list of entries."""
_DIRECTORY_ENTRY = b"PK\x01\x02"
_XZ_MEMORY_BYTES = 32_000_000
"""To decompress an xz: its default level needs 9 MB, and its header may ask for 4 GB."""
_SKIPPED_AT_ONCE = 65_536
_NOT_ONE = "that is no tar or zip archive, or a broken one"


def check_archive(file: BinaryIO) -> int:
    """Return how many files a tar (compressed or not) or zip archive holds.

    It is unpacked only in the sandbox. Takes seconds for a large one: call it in a thread.

    Raises:
        InputError: it is none, is empty or too large, or holds something that does not belong in a project.
    """
    size = file.seek(0, io.SEEK_END)
    if size > MAX_ARCHIVE_BYTES:
        raise InputError(f"the archive has {size} bytes; at most {MAX_ARCHIVE_BYTES} can be uploaded")
    files: list[str] = []
    room = MAX_UNPACKED_BYTES
    try:
        for name, size in _zipped(file) if zipfile.is_zipfile(file) else _tarred(file):
            if name.startswith("/") or ".." in name.split("/") or "\0" in name:
                raise InputError(f"the archive holds {name[:200]!r}, which leads out of the project")
            path = posixpath.normpath(name)
            if problem := too_long(path):
                raise InputError(f"the archive cannot be unpacked: {problem}")
            files.append(path)
            room -= max(size, 0)
            if room < 0 or len(files) > MAX_FILES:
                raise InputError(
                    f"the archive unpacks to more than {MAX_UNPACKED_BYTES} bytes or {MAX_FILES} files"
                )
    except InputError:
        raise
    # Whatever these modules stumble over in an archive's bytes, the archive is at fault.
    except Exception as exc:
        raise InputError(f"{_NOT_ONE}: {str(exc)[:200]}") from None
    if not files:
        raise InputError("the archive is empty")
    if both := file_and_folder(files):
        raise InputError(f"the archive has {both[0]!r} both as a file and as a folder, in {both[1]!r}")
    return len(files)


def members(
    file: BinaryIO, *, max_bytes: int = MAX_UNPACKED_BYTES
) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Yield the entries of a tar, which is not compressed, each with its content if it is a file of its own.

    Raises:
        InputError: it holds more entries or bytes than can be, or is no tar.
    """
    measured = _Measured(file, max_bytes)
    for archive, entry in _entries(measured):
        content = b""
        # A sparse file says how long its holes are, and reading fills them.
        if entry.isreg() and not entry.issparse():
            stream = archive.extractfile(entry)
            measured.allow(entry.size)
            content = stream.read(min(entry.size, max_bytes)) if stream else b""
        yield entry, content


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return a tar of files (path → content), whatever bytes their names are made of."""
    file = io.BytesIO()
    with tarfile.open(
        fileobj=file, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return file.getvalue()


def _entries(measured: "_Measured") -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    count = 0
    with tarfile.open(fileobj=measured, mode="r:", errors="surrogateescape", encoding="utf-8") as archive:
        while (entry := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]  # it keeps all that it has seen
            count += 1
            if count > MAX_ENTRIES or len(archive.pax_headers) > _MAX_GLOBAL_HEADERS:
                raise InputError(f"the archive holds more than {MAX_ENTRIES} files and folders")
            yield archive, entry
            measured.allow(_MAX_HEADER_BYTES)


def _tarred(file: BinaryIO) -> Iterator[tuple[str, int]]:
    measured = _Measured(_decompressed(file), MAX_UNPACKED_BYTES + MAX_ENTRIES * 2048)
    for _, entry in _entries(measured):
        if entry.isdir():
            continue
        if entry.issym() or entry.islnk():
            folder = posixpath.dirname(entry.name) if entry.issym() else ""
            target = posixpath.normpath(posixpath.join(folder, entry.linkname))
            if target.startswith(("/", "../")) or target == "..":
                raise InputError(f"the archive holds a link out of the project, {entry.name[:200]!r}")
        elif not entry.isfile():
            raise InputError(f"the archive holds {entry.name[:200]!r}, which is no file, folder or link")
        yield entry.name, entry.size


def _zipped(file: BinaryIO) -> Iterator[tuple[str, int]]:
    with zipfile.ZipFile(_MeasuredZip(file)) as archive:
        for entry in archive.infolist():
            if entry.flag_bits & 1:
                raise InputError(f"the archive holds {entry.filename[:200]!r} encrypted")
            if not entry.is_dir():
                yield entry.filename, entry.file_size


def _decompressed(file: BinaryIO) -> BinaryIO:
    file.seek(0)
    start = file.read(6)
    file.seek(0)
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]
    if start.startswith(b"BZh"):
        return bz2.BZ2File(file)  # type: ignore[return-value]
    return io.BufferedReader(_XZ(file)) if start == b"\xfd7zXZ\0" else file


class _Measured(io.RawIOBase):
    """A file to be read forwards, as much of it as is allowed: more is never asked for.

    Args:
        file: what is read; to skip is to read and drop, for it may be compressed.
        max_bytes: how far it may be read.
    """

    def __init__(self, file: BinaryIO, max_bytes: int) -> None:
        super().__init__()
        self._file = file
        self._max_bytes = max_bytes
        self._at = 0
        self._allowed = _MAX_HEADER_BYTES

    def allow(self, size: int) -> None:
        """Let so many bytes be read from here on, whatever was allowed before."""
        self._allowed = size

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        self._allowed -= size
        if size < 0 or self._allowed < 0:
            raise InputError("the archive holds a header that is longer than any can be")
        data = self._file.read(size)
        self._moved(len(data))
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go forwards."""
        if whence != io.SEEK_SET or offset < self._at:
            raise InputError(_NOT_ONE)
        while self._at < offset:
            skipped = len(self._file.read(min(_SKIPPED_AT_ONCE, offset - self._at)))
            if not skipped:
                break
            self._moved(skipped)
        return self._at

    def tell(self) -> int:
        """Return where the next byte is."""
        return self._at

    def _moved(self, by: int) -> None:
        self._at += by
        if self._at > self._max_bytes:
            raise InputError(f"the archive unpacks to more than {self._max_bytes} bytes")


class _MeasuredZip(io.RawIOBase):
    """A zip's file; its list of entries is read at once, and looked at first."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        if size > _MAX_DIRECTORY_BYTES:
            raise InputError(f"the archive has a list of entries of {size} bytes")
        data = self._file.read(_MAX_DIRECTORY_BYTES if size < 0 else size)
        if data.count(_DIRECTORY_ENTRY) > MAX_ENTRIES:
            raise InputError(f"the archive holds more than {MAX_ENTRIES} files and folders")
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return where the next byte is."""
        return self._file.tell()

    def seekable(self) -> bool:
        """It is."""
        return True


class _XZ(io.RawIOBase):
    """An xz file as it was before; unlike `lzma.LZMAFile` with a limit on the memory that takes."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._inner = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        """Fill the buffer, with 0 bytes at the end."""
        while not self._inner.eof:
            packed = self._file.read(_SKIPPED_AT_ONCE) if self._inner.needs_input else b""
            data = self._inner.decompress(packed, len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)
            if not packed and self._inner.needs_input:
                raise EOFError("the archive ends too early")
        return 0
