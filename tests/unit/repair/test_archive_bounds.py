"""Archives that claim, or hold, more than is read: refused with little memory, each by a clear error."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable

import pytest

from agent.errors import InputError
from agent.repair.archive import check_archive

MAX_GROWN_BYTES = 64_000_000


def header(name: str, size: int, kind: bytes) -> bytes:
    """Return a tar's header."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def zeros(size: int, of: int = 1_000_000) -> bytes:
    """Return a gzip of so many zeros behind what was packed before: a member of its own."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as made:
        for _ in range(size // of):
            made.write(bytes(of))
    return packed.getvalue()


def long_header(kind: bytes) -> bytes:
    """Return a tar whose first header claims 700 MB of attributes, or of a name, and has them."""
    return gzip.compress(header("x", 700_000_000, kind)) + zeros(700_000_000)


def chained_headers() -> bytes:
    """Return a tar of headers about headers, each of which waits for the next."""
    record = b"200000 comment=".ljust(199_999, b"x") + b"\n"
    one = header("x", len(record), tarfile.XHDTYPE) + record.ljust(200_192, b"\0")
    return gzip.compress(one * 1_000)


def global_headers() -> bytes:
    """Return a tar of headers for all entries, which its reader must keep."""
    packed = io.BytesIO()
    for number in range(20_000):
        text = f"a{number:05}=".encode() + b"x" * 4_000
        record = b"%d %s\n" % (len(text) + 6, text)
        packed.write(header("g", len(record), tarfile.XGLTYPE) + record.ljust(4_096, b"\0"))
    return bz2.compress(packed.getvalue() + header("f", 0, tarfile.REGTYPE), 1)


def folders() -> bytes:
    """Return a tar of 400,000 folders."""
    return gzip.compress(b"".join(header(f"d{number}", 0, tarfile.DIRTYPE) for number in range(1_000)) * 400)


def sparse() -> bytes:
    """Return a tar of a file of 8 GB that is all hole, as GNU tar writes it."""
    block = bytearray(header("s", 0, tarfile.GNUTYPE_SPARSE))
    block[483:495] = b"%011o\0" % (8 << 30 >> 1)
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:512]))
    return bytes(block) + bytes(1024)


def behind() -> bytes:
    """Return a tar whose first entry has a size below zero, in the binary form."""
    block = bytearray(header("x", 0, tarfile.REGTYPE))
    block[124:136] = (-(1 << 40)).to_bytes(12, "big", signed=True)
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:512]))
    return bytes(block) * 3


def many_in_a_zip() -> bytes:
    """Return a zip of 500,000 entries that says it has one."""
    entry = b"PK\x01\x02" + bytes(24) + struct.pack("<H", 1) + bytes(16) + b"a"
    listing = entry * 500_000
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(listing), 0, 0)
    return listing + end


def many_small_in_a_zip() -> bytes:
    """Return a zip of 60,000 entries."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        for number in range(60_000):
            made.writestr(zipfile.ZipInfo(f"d{number}/"), b"")
    return packed.getvalue()


def bomb_in_a_zip() -> bytes:
    """Return a zip of a few hundred KB that unpacks to 400 MB."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made, made.open("a", "w") as file:
        for _ in range(400):
            file.write(bytes(1_000_000))
    return packed.getvalue()


def overlapping_in_a_zip() -> bytes:
    """Return a zip of many entries that share their bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("a", bytes(20_000_000))
        first = made.infolist()[0]
        for number in range(30):
            copy = zipfile.ZipInfo(f"b{number}")
            for name in ("compress_type", "CRC", "compress_size", "file_size", "header_offset"):
                setattr(copy, name, getattr(first, name))
            made.filelist.append(copy)
            made.NameToInfo[copy.filename] = copy
    return packed.getvalue()


def greedy_xz() -> bytes:
    """Return an xz that asks for 2 GB of memory."""
    one = lzma.LZMACompressor(lzma.FORMAT_XZ, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 4096}])
    packed = bytearray(one.compress(b"x") + one.flush())
    # The size of the dictionary is one byte of the block's header, behind which comes its checksum.
    packed[16] = 38
    packed[20:24] = zlib.crc32(packed[12:20]).to_bytes(4, "little")
    return bytes(packed)


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (lambda: long_header(tarfile.XHDTYPE), "longer than any can be"),
        (lambda: long_header(tarfile.GNUTYPE_LONGNAME), "longer than any can be"),
        (chained_headers, "longer than any can be"),
        (global_headers, "longer than any can be"),
        (folders, "more than 40000 files and folders"),
        (behind, "no tar or zip archive"),
        (sparse, "unpacks to more than"),
        (
            lambda: gzip.compress(header("f", 8 << 30, tarfile.REGTYPE)) + zeros(400_000_000),
            "unpacks to more",
        ),
        (many_in_a_zip, "a list of entries of|more than 40000 files and folders"),
        (many_small_in_a_zip, "more than 40000 files and folders"),
        (bomb_in_a_zip, "unpacks to more than"),
        (overlapping_in_a_zip, "unpacks to more than"),
        (greedy_xz, "Memory usage limit"),
        (lambda: b"\x1f\x8b\x08\x00" + b"\xff" * 1000, "no tar or zip archive"),
        (lambda: b"\xfd7zXZ\0" + b"\xff" * 1000, "no tar or zip archive"),
        (lambda: b"BZh9" + b"\xff" * 1000, "no tar or zip archive"),
    ],
    ids=range(16),
)
def test_archive_that_claims_too_much_is_refused_in_little_memory(
    packed: Callable[[], bytes], words: str
) -> None:
    """Whatever its headers and lists say, no more is read at once than an honest one has."""
    file = io.BytesIO(packed())
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=words):
            check_archive(file)
        assert tracemalloc.get_traced_memory()[1] < MAX_GROWN_BYTES
    finally:
        tracemalloc.stop()
