"""Uploaded archives: what is taken and what is refused, without unpacking."""

import io
import tarfile
import zipfile

import pytest

from agent.errors import InputError
from agent.repair import archive
from agent.repair.archive import check_archive


def tar(*entries: tuple[str, bytes], mode: str = "w:gz", **links: str) -> bytes:
    """Return a tar archive of files, and of links by name."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as made:  # type: ignore[call-overload]
        for name, data in entries:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
        for name, target in links.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            made.addfile(info)
    return packed.getvalue()


def zipped(*entries: tuple[str, bytes]) -> bytes:
    """Return a zip archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        for name, data in entries:
            made.writestr(name, data)
    return packed.getvalue()


def checked(data: bytes) -> int:
    """Check an archive as it lies in a file."""
    return check_archive(io.BytesIO(data))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_archive_counts_the_files_of_a_tar(mode: str) -> None:
    """However it is compressed; links that stay inside count."""
    assert checked(tar(("p/a", b"x"), ("p/b", b""), mode=mode, link="p/a")) == 3


def test_archive_counts_the_files_of_a_zip() -> None:
    """Folders do not count."""
    assert checked(zipped(("p/", b""), ("p/a", b"x"))) == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no tar or zip archive"),
        (b"hello" * 1000, "no tar or zip archive"),
        (tar(("a", b"x" * 5000))[:-40], "or a broken one"),
        (tar(), "the archive is empty"),
        (tar(("../a", b"x")), "leads out of the project"),
        (tar(("/etc/a", b"x")), "leads out of the project"),
        (zipped(("a/../../b", b"x")), "leads out of the project"),
        (tar(("a", b"x"), ("a/b", b"y")), "'a' both as a file and as a folder, in 'a/b'"),
        (zipped(("a/b", b"y"), ("a", b"x")), "'a' both as a file and as a folder, in 'a/b'"),
        (tar(("n" * 300, b"x")), "a name of more than 255 bytes"),
        (tar(link="/etc/passwd"), "a link out of the project"),
        (tar(link="../x"), "a link out of the project"),
    ],
    # Not named by their bytes, which hold the time: the processes of a run must find the same tests.
    ids=range(12),
)
def test_archive_is_refused_with_a_reason(data: bytes, words: str) -> None:
    """Broken, empty, or leading out of the project."""
    with pytest.raises(InputError, match=words):
        checked(data)


def test_archive_refuses_what_is_no_file() -> None:
    """Devices and pipes have no place in a project."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as made:
        pipe = tarfile.TarInfo("pipe")
        pipe.type = tarfile.FIFOTYPE
        made.addfile(pipe)
    with pytest.raises(InputError, match="no file, folder or link"):
        checked(packed.getvalue())


def test_archive_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes may unpack to many; no more than the limit is looked at."""
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 100_000)
    with pytest.raises(InputError, match="unpacks to more than"):
        checked(tar(("a", bytes(100_001))))
