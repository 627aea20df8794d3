"""How the program that works on files tells encodings and line ends, and keeps them."""

import base64
import io
import random
from pathlib import Path
from typing import Any

import pytest

from agent.sandbox.e2b.inside.encodings import encoding_of
from agent.sandbox.e2b.inside.files import edit, read, write
from agent.sandbox.e2b.inside.search import search
from agent.tools.file_results import edit_text, file_text, written_text

LATIN = "# -*- coding: latin-1 -*-\nname = 'Zoë'\nprint(name)\n"


def named(data: bytes) -> str | None:
    """Return an encoding's name."""
    found = encoding_of(io.BytesIO(data))
    return None if found is None else found.name


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"", ""),
        ("Zoë €\n".encode(), ""),
        ("\ufeffimport os\n".encode(), "utf-8 with BOM"),
        ("\ufeff\x07bell\n".encode(), "utf-8 with BOM"),
        ("\ufeffZoë\n".encode("utf-16-le"), "utf-16-le with BOM"),
        ("\ufeffZoë\n".encode("utf-16-be"), "utf-16-be with BOM"),
        ("\ufeffZoë\n".encode("utf-32-le"), "utf-32-le with BOM"),
        ("Zoe lives here\r\n".encode("utf-16-le"), "utf-16-le (guessed)"),
        (LATIN.encode("latin-1"), "latin-1"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=iso-8859-15 :\n\xa4\n", "iso8859-15"),
        ("# coding: cp1251\nприветствие\n".encode("cp1251"), "cp1251"),
        ('<?xml version="1.0" encoding="ISO-8859-1"?>\n<a>é</a>'.encode("latin-1"), "latin-1"),
        ('<?xml version="1.0" encoding="UTF-16"?>\n<a>é</a>'.encode(), ""),
        (b"# coding: base64\nx\n", ""),
        (b"# coding: no-such-thing\nx\n", ""),
        ("Grüße aus Köln\n".encode("latin-1"), "latin-1 (guessed)"),
        ("„Grüße“ – 5 €\n".encode("cp1252"), "cp1252 (guessed)"),
        (b"x" * 20_000 + "Grüße".encode("latin-1"), "latin-1 (guessed)"),
        (("Grüße aus Köln, schöne! " * 900).encode() + b"\xff\n", "utf-8 (but for 1 bytes)"),
        (random.Random(5).randbytes(1000), None),
        (bytes(range(1, 256)), None),
        (b"\xff\xfe\x01\0\x02\0\x03\0" * 50, None),
        (b"\x89\x9d\x81 and so on", None),
        (b"\0two", None),
        (b"\x7fELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0>\0\1\0\0\0" * 9, None),
    ],
    ids=range(25),
)
def test_encoding_is_told_by_mark_declaration_or_what_a_file_holds(data: bytes, name: str | None) -> None:
    """By all of the file, and not of what is no text."""
    assert named(data) == name


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Calls an operation on the file `f`, which is given its bytes first."""
    monkeypatch.setenv("HOME", str(tmp_path))
    path, root = str(tmp_path / "f"), str(tmp_path)

    def called(operation: Any, data: bytes | None, /, **given: Any) -> Any:
        if data is not None:
            (tmp_path / "f").write_bytes(data)
        return operation(path=path, root=root, **given)

    return called


def shown(call: Any, data: bytes, **given: Any) -> str:
    """Return what is read of a file."""
    asked = {"also": [], "first": 1, "last": None, "start": None, "room": 1_000} | given
    return file_text("f", call(read, data, **asked), 4_000)


@pytest.mark.parametrize("codec", ["latin-1", "utf-16", "utf-16-be", "utf-8-sig", "cp1252"])
def test_a_file_in_any_encoding_is_read_as_text_with_its_name(call: Any, codec: str) -> None:
    """By lines and by bytes, whose pages make the whole."""
    lines = [f"Zeile {n} – schön\n" if codec != "latin-1" else f"Zeile {n} schön\n" for n in range(200)]
    data = "".join(lines).encode(codec)
    told = {"utf-8-sig": "utf-8 with BOM", "utf-16": "utf-16-le with BOM", "utf-16-be": "utf-16-be (guessed)"}
    name = told.get(codec, f"{codec} (guessed)")
    text = shown(call, data)
    assert text.startswith('<file path="f" lines="1-')
    assert f' encoding="{name}">\n{lines[0]}{lines[1]}' in text
    assert lines[99] in shown(call, data, first=100)
    pages, start = "", 0
    while True:
        answer = call(read, data, also=[], first=1, last=None, start=start, room=1_000)
        pages += answer["text"]
        start = answer["end"]
        if start >= answer["size"]:
            break
    assert pages == "".join(lines)


@pytest.mark.parametrize(
    ("was", "old", "new", "now"),
    [
        ("a\r\nb\r\n", "b", "b\nc\nd", "a\r\nb\r\nc\r\nd\r\n"),
        ("a\r\nb\r\n", "a\nb\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "a\nx\r\nb", "a\r\nx\r\nb\r\n"),
        ("a\r\nb\r\n", "\nb", "\nx\nb", "a\r\nx\r\nb\r\n"),
        ("a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
        ("a\r\nb\r\n", "a\r\nb\r\n", "a\nb\n", "a\nb\n"),
        ("a\nb\r\nc\n", "b", "b\nx", "a\nb\r\nx\r\nc\n"),
        ("a\nb\r\nc\n", "c", "c\nx", "a\nb\r\nc\nx\n"),
        ("a\r\nb\nc", "c", "c\nx", "a\r\nb\nc\nx"),
        ("a\nb\r\nc\n", "\nc", "\nx\nc", "a\nb\r\nx\r\nc\n"),
        ("a\nb\n", "b", "b\nc", "a\nb\nc\n"),
        ("a\nb\n", "b", "b\r\nc", "a\nb\r\nc\n"),
        ("a", "a", "a\nb", "a\nb"),
        ("\ufeffa\r\n", "a", "b\nc", "\ufeffb\r\nc\r\n"),
    ],
    ids=range(14),
)
@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le"])
def test_an_edit_keeps_the_line_ends_around_it(
    call: Any, was: str, old: str, new: str, now: str, codec: str
) -> None:
    """Of a file with carriage returns, of a mixed one as at the place, at its end, behind a mark."""
    # A mark, so that so little text is known for what it is.
    mark = "" if codec == "utf-8" or was.startswith("\ufeff") else "\ufeff"
    answer = call(edit, (mark + was).encode(codec), old=old, new=new, count=1)
    assert edit_text("f", answer, 1).startswith("Replaced 1 in f, line ")
    assert Path(call(lambda path, root: path, None)).read_bytes() == (mark + now).encode(codec)


def test_an_edit_writes_the_files_own_encoding_or_refuses(call: Any) -> None:
    """What it does not touch stays byte for byte; what cannot be written is named, and nothing changed."""
    data = LATIN.encode("latin-1")
    answer = call(edit, data, old="Zoë", new="Chloë", count=1)
    assert edit_text("f", answer, 1) == "Replaced 1 in f, line 2. Its encoding is latin-1."
    path = Path(call(lambda path, root: path, None))
    assert path.read_bytes() == LATIN.replace("Zoë", "Chloë").encode("latin-1")
    with pytest.raises(OSError, match=r"in latin-1, which has no '\\u20ac' of the new text; nothing was"):
        call(edit, data, old="Zoë", new="5 €", count=1)
    assert path.read_bytes() == data
    damaged = b"# coding: shift_jis\n\x82\xa0" + b"x" * 9_000 + b"\x82"
    with pytest.raises(OSError, match="not all of it is text in shift_jis"):
        call(edit, damaged, old="x", new="y", count=9_000)
    assert path.read_bytes() == damaged
    call(edit, b"ok \xff\xfe bytes\n", old="ok", new="öK", count=1)
    wide = "Grüße, schöne " * 9
    call(edit, wide.encode() + b"\xff", old="schöne ", new="", count=9)
    assert path.read_bytes() == wide.replace("schöne ", "").encode() + b"\xff"


@pytest.mark.parametrize(
    ("was", "content", "now", "said"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n", " Its lines end with \\r\\n, as before."),
        (b"a\r\nb\n", "x\ny\n", b"x\ny\n", ""),
        (b"a\r\n", "x\r\ny\n", b"x\r\ny\n", ""),
        (b"#!/bin/sh\r\n", "#!/bin/sh\necho\n", b"#!/bin/sh\necho\n", ""),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n", " Its encoding is utf-8 with BOM."),
        (b"\xef\xbb\xbfa\n", "\ufeffb\n", b"\xef\xbb\xbfb\n", ""),
        (b"\xff\xfea\0\r\0\n\0", "b\n", b"\xff\xfeb\0\r\0\n\0", " Its lines end with \\r\\n, as before. Its"),
        (LATIN.encode("latin-1"), LATIN, LATIN.encode("latin-1"), " Its encoding is latin-1."),
        (LATIN.encode("latin-1"), "é\n", "é\n".encode(), ""),
        (b"caf\xe9\n", "th\xe9\n", b"th\xe9\n", " Its encoding is latin-1 (guessed)."),
        (b"caf\xe9\n", "5 €\n", "5 €\n".encode(), " Its encoding is utf-8, for latin-1 has no '\\u20ac'."),
        (b"\0\1binary", "text\n", b"text\n", ""),
        (None, LATIN, LATIN.encode("latin-1"), " Its encoding is latin-1."),
        (None, "a\nb", b"a\nb", ""),
        (b"", "a\nb", b"a\nb", ""),
    ],
    ids=range(15),
)
def test_a_file_written_anew_keeps_what_the_text_does_not_say(
    call: Any, was: bytes | None, content: str, now: bytes, said: str
) -> None:
    """Line ends, a mark, an encoding; not where a script names its interpreter, or the text says else."""
    answer = call(write, was, data=base64.b64encode(content.encode()).decode())
    assert Path(call(lambda path, root: path, None)).read_bytes() == now
    assert answer["size"] == len(now)
    assert written_text("f", answer).startswith(f"Wrote {len(now)} bytes to f.{said}")
    assert said or written_text("f", answer).endswith("to f.")


@pytest.mark.parametrize(
    ("data", "pattern", "lines"),
    [
        ("\ufeffimport os\n".encode(), "^import", [(1, "import os")]),
        ("\ufeffimport os\r\nimport re\r\n".encode("utf-16-le"), "^import .*s$", [(1, "import os")]),
        ("a\nZoë\n".encode("latin-1"), "^Zo[ë]$", [(2, "Zoë")]),
        (b"x\n" * 9_000 + "Zoë\n".encode("latin-1"), r"Zo\w$", [(9_001, "Zoë")]),
        ("über 5 €\n".encode(), r"^\wber . €$", [(1, "über 5 €")]),
        (b"two\r\nthree\r\n", "two$", [(1, "two")]),
        (b"two\r\nthree\r\n", r"two\r\n", [(1, "two")]),
        (b"x" * 1_000, "x", [(1, "x" * 399 + "…")]),
    ],
    ids=range(8),
)
def test_a_search_finds_what_is_read(
    call: Any, data: bytes, pattern: str, lines: list[tuple[int, str]]
) -> None:
    """Behind a mark, in any encoding, by characters, before whatever ends a line."""
    more = {"also": [], "only": None, "ignore_case": False, "most": 10, "room": 10_000}
    answer = call(search, data, pattern=pattern, **more)
    assert [(match["line"], match["text"]) for match in answer["matches"]] == lines
    assert answer["binary"] == 0
