"""The program that works on files in the sandbox, where it can be tried without one."""

import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.sandbox.e2b.inside.files import replace

NEW = b"x" * 100_000


@pytest.fixture
def no_room() -> Iterator[None]:
    """No file may grow beyond 4 KB, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_keeps_its_text_where_the_new_one_has_no_room(tmp_path: Path, no_room: None) -> None:
    """Nothing half-written stays behind, neither there nor beside it."""
    file = tmp_path / "b.txt"
    file.write_bytes(b"precious")
    with pytest.raises(OSError, match="too large"):
        replace(str(file), NEW)
    with pytest.raises(OSError, match="too large"):
        replace(str(tmp_path / "new.txt"), NEW)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("b.txt", b"precious")]


def test_a_file_keeps_its_mode_and_its_names(tmp_path: Path) -> None:
    """A script stays executable; a file with two names is the same file under both."""
    script, other = tmp_path / "run.sh", tmp_path / "other.sh"
    script.write_bytes(b"old")
    script.chmod(0o750)
    replace(str(script), NEW)
    assert (stat.S_IMODE(script.stat().st_mode), script.read_bytes()) == (0o750, NEW)
    other.hardlink_to(script)
    replace(str(script), b"both")
    assert other.read_bytes() == b"both"
