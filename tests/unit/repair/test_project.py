"""The project's files: what is refused, what is protected."""

import io
import tarfile
from typing import Any

import pytest

from agent.errors import InputError, SandboxError
from agent.repair import project as tree


@pytest.mark.parametrize(
    ("project", "words"),
    [
        (None, "`project` is missing"),
        ({}, "`project` is empty"),
        ([], "`project` is not a map"),
        ({"a": "x", "a/b": "y"}, "'a' both as a file and as a folder, in 'a/b'"),
        ({"a": 1}, "'a' to int"),
        ({"../a": ""}, "'../a'"),
        ({"/etc/passwd": ""}, "'/etc/passwd'"),
        ({"a//b": ""}, "'a//b'"),
        ({"a\0b": ""}, "a\\x00b"),
        ({"a": "x" * 1_000_001}, "1000001 bytes"),
    ],
)
def test_checked_refuses_with_a_reason(project: Any, words: str) -> None:
    """Bad input is one error that names the file."""
    with pytest.raises(InputError) as caught:
        tree.checked(project)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "path", ["tests/test_a.py", "test_a.py", "pkg/test_a.py", "conftest.py", "a_test.py"]
)
def test_is_test_knows_tests(path: str) -> None:
    """Tests and what configures them are protected."""
    assert tree.is_test(path)


@pytest.mark.parametrize("path", ["app.py", "src/contest.py", "latest.py", "attest/x.py"])
def test_is_test_leaves_code(path: str) -> None:
    """Code is what a repair changes."""
    assert not tree.is_test(path)


def archive(**files: bytes) -> bytes:
    """Return a tar archive with these files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("./link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return packed.getvalue()


def test_texts_leaves_out_links_and_binary_files() -> None:
    """Only text comes back; a link is not followed on the host."""
    assert tree._texts(archive(a=b"x\n", b=b"\xff\xfe")) == {"a": "x\n"}


def test_texts_refuses_an_archive_that_unpacks_to_too_much() -> None:
    """A small archive can hold much; it is not unpacked beyond the limit."""
    with pytest.raises(SandboxError, match="20 MB"):
        tree._texts(archive(a=b"\0" * (tree.MAX_TREE_BYTES + 1)))
