"""Text in files, where it can be tried without a sandbox: encodings, line ends, edits, searches."""

import base64
from pathlib import Path
from typing import Any

import pytest

from agent.sandbox.e2b.inside import files
from agent.sandbox.e2b.inside.search import search
from agent.sandbox.e2b.inside.texts import encoding_of, replaced

LATIN = "# coding: latin-1\nname = 'Müller'\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"plain", "utf-8"),
        ("ü€".encode(), "utf-8"),
        (b"\xef\xbb\xbfimport os\n", "utf-8"),
        (LATIN.encode("latin-1"), "iso8859-1"),
        ("Grüße aus Köln\n".encode("latin-1"), "iso8859-1"),
        ("“quoted” – 5 €\nplain text follows\n".encode("cp1252"), "cp1252"),
        ("<?xml version='1.0' encoding='koi8-r'?><a>Привет</a>".encode("koi8-r"), "koi8-r"),
        ("text".encode("utf-16"), "utf-16-le"),
        ("\ufefftext".encode("utf-16-be"), "utf-16-be"),
        ("text without a mark\n".encode("utf-16-le"), "utf-16-le"),
        ("text without a mark\n".encode("utf-16-be"), "utf-16-be"),
        ("text".encode("utf-32"), "utf-32-le"),
        (b"\x00\x01\x02\x03", None),
        (b"\x1f\x8b\x08\xff\x90", None),
        (bytes(range(128, 256)), None),
        (b"# coding: nonsense\n\xff ok ok ok ok", "iso8859-1"),
        (b"", "utf-8"),
    ],
)
def test_encoding_is_told_by_mark_declaration_or_bytes(data: bytes, expected: str | None) -> None:
    """What is no text in any of them is none."""
    found = encoding_of(data)
    assert (found and found[0]) == expected


def read(folder: Path, name: str, **more: Any) -> dict[str, Any]:
    """Read a file as the tool does."""
    wanted: dict[str, Any] = {"first": 1, "last": None, "start": None, "room": 1_000, **more}
    return files.read(str(folder / name), str(folder), [], **wanted)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig", "utf-16-le"])
def test_file_is_read_and_edited_in_its_own_encoding(tmp_path: Path, encoding: str) -> None:
    """It is shown as text with the encoding named, found by its first line, and stays what it was."""
    text = "import os\nname = 'Müller'\nlast = 1\n"
    (tmp_path / "a.py").write_bytes(text.encode(encoding))
    answer = read(tmp_path, "a.py")
    assert (answer["kind"], answer["text"], answer["total"]) == ("text", text, 3)
    assert answer["encoding"] != ""
    found = search(str(tmp_path), str(tmp_path), [], "^import", None, False, 9, 1_000)
    assert [match["line"] for match in found["matches"]] == [1]
    found = search(str(tmp_path), str(tmp_path), [], "Müll", None, False, 9, 1_000)
    assert [match["text"] for match in found["matches"]] == ["name = 'Müller'"]
    files.edit(str(tmp_path / "a.py"), str(tmp_path), "Müller", "Größe", 1)
    assert (tmp_path / "a.py").read_bytes() == text.replace("Müller", "Größe").encode(encoding)


def test_what_stands_behind_the_first_kilobytes_decides_too(tmp_path: Path) -> None:
    """A letter far down that is no UTF-8 is shown as the letter it is."""
    (tmp_path / "a.txt").write_bytes(b"x" * 20_000 + b"\n\xfc\n")
    assert read(tmp_path, "a.txt", first=2)["text"] == "ü\n"


def test_edit_refuses_what_the_encoding_has_not(tmp_path: Path) -> None:
    """Nothing is changed, and the reason is said."""
    (tmp_path / "a.py").write_bytes(LATIN.encode("latin-1"))
    with pytest.raises(OSError, match="its encoding, iso8859-1, has no '€'"):
        files.edit(str(tmp_path / "a.py"), str(tmp_path), "Müller", "5 €", 1)
    (tmp_path / "b").write_bytes(b"\x00\x01\x02")
    with pytest.raises(OSError, match="not text"):
        files.edit(str(tmp_path / "b"), str(tmp_path), "a", "b", 1)
    assert (tmp_path / "a.py").read_bytes() == LATIN.encode("latin-1")


def test_file_is_written_in_the_encoding_that_its_text_declares(tmp_path: Path) -> None:
    """Whoever reads it goes by the declaration; what is no longer as before is told."""

    def write(text: str) -> dict[str, Any]:
        data = base64.b64encode(text.encode()).decode()
        return files.write(str(tmp_path / "a.py"), str(tmp_path), data)

    assert write(LATIN) | {"size": 0} == {"size": 0, "encoding": "iso8859-1", "was": "", "was_crlf": False}
    assert (tmp_path / "a.py").read_bytes() == LATIN.encode("latin-1")
    assert write("x = 'ü'\n")["was"] == "iso8859-1"
    assert (tmp_path / "a.py").read_bytes() == "x = 'ü'\n".encode()
    (tmp_path / "a.py").write_bytes(b"a\r\nb\r\n")
    assert write("a\nb\n")["was_crlf"] is True


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\r\nb\r\nc\r\n", "b", "b1\nb2", "a\r\nb1\r\nb2\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n"),
        ("a\r\nb\r\n", "b\n", "b\nc\n", "a\r\nb\r\nc\r\n"),
        ("a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
        ("a\r\nb\r\n", "b", "b\r\nc", "a\r\nb\r\nc\r\n"),
        # Of a file with both, each line keeps its own.
        ("a\nb\r\nc\n", "b", "x\ny", "a\nx\r\ny\r\nc\n"),
        ("a\nb\r\nc\n", "c", "x\ny", "a\nb\r\nx\ny\n"),
        ("a\nb\r\nc\n", "a\nb\nc", "x", "x\n"),
        # As it is, where the caller says how lines end.
        ("a\r\nb\r\n", "a\r\n", "a\n", "a\nb\r\n"),
        ("a\nb\n", "a\n", "a\r\n", "a\r\nb\n"),
        ("a\nb", "b", "b\nc", "a\nb\nc"),
        ("", "x", "y", ""),
    ],
)
def test_edited_lines_end_as_those_around_them(text: str, old: str, new: str, expected: str) -> None:
    """Two lines put into a file with CRLF end in CRLF."""
    assert replaced(text, old, new)[0] == expected
