"""Pictures in a terminal: which protocol it says it speaks, and what is written then."""

import base64
import io
import itertools
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from PIL import Image

from agent.cli import pictures
from agent.cli.sixel import sixel

WHO, KITTY = b"\x1b[>q", b"\x1b_G"


@contextmanager
def terminal(name: str, da1: str, *, kitty: bool = False) -> Iterator[int]:
    """Give a pseudo-terminal whose other side answers as a terminal emulator does."""
    emulator, program = os.openpty()
    seen = bytearray()

    def answer() -> None:
        while b"\x1b[c" not in seen or (kitty and seen.count(b"\x1b[c") < 2):
            seen.extend(piece := os.read(emulator, 1024))
            if WHO in piece and name:
                os.write(emulator, f"\x1bP>|{name}\x1b\\".encode())
            if KITTY in piece and kitty:
                os.write(emulator, b"\x1b_Gi=31;OK\x1b\\")
            if b"\x1b[c" in piece and da1:
                os.write(emulator, f"\x1b[?{da1}c".encode())

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield program
    finally:
        os.close(program)
        thread.join(2)
        os.close(emulator)


@pytest.mark.parametrize(
    ("name", "da1", "kitty", "protocol"),
    [
        ("kitty(0.32.2)", "62", True, "kitty"),
        ("ghostty 1.0.0", "62;22", True, "kitty"),
        ("iTerm2 3.5.0", "62;4", False, "iterm2"),
        ("foot(1.16.2)", "62;4;22", False, "sixel"),
        ("tmux 3.4", "1;2;4", False, "sixel"),
        ("tmux 3.3a", "1;2", False, None),
        ("XTerm(379)", "64;1;2;6;9;15;16;17;18;21;22;28", False, None),
        ("", "6", False, None),
    ],
)
def test_terminal_speaks_what_it_says(name: str, da1: str, kitty: bool, protocol: str | None) -> None:
    """Each answer is the terminal's own; the best protocol wins, and 4 must be a feature, not the model."""
    with terminal(name, da1, kitty=kitty) as fd:
        assert pictures.spoken(fd) == protocol


def test_what_does_not_answer_gets_no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a silent terminal nor a file is waited for; the terminal's mode is as before."""
    monkeypatch.setattr(pictures, "_PATIENCE_S", 0.05)
    with terminal("", "") as fd:
        before = pictures.termios.tcgetattr(fd)
        assert pictures.spoken(fd) is None
        assert pictures.termios.tcgetattr(fd) == before
    reading, writing = os.pipe()
    assert pictures.spoken(reading) is None
    os.close(reading)
    os.close(writing)


def picture(form: str = "PNG", size: tuple[int, int] = (40, 13)) -> bytes:
    """Return a small picture: red, with a blue block at its bottom right."""
    image = Image.new("RGB", size, "red")
    image.paste((0, 0, 255), (size[0] // 2, size[1] // 2, size[0], size[1]))
    file = io.BytesIO()
    image.save(file, form)
    return file.getvalue()


def test_kitty_gets_the_file_in_pieces() -> None:
    """At most 4096 characters each, put together again they are the file; a wide one is made to fit."""
    file = picture(size=(900, 700)) + bytes(4000)
    drawn = pictures.drawn(file, "kitty", columns=30)
    pieces = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", drawn)
    assert all(len(text) <= 4096 for _, text in pieces)
    assert base64.b64decode("".join(text for _, text in pieces)) == file
    assert pieces[0][0] == "a=T,f=100,q=2,c=30,m=1"
    assert [head for head, _ in pieces[1:]] == ["m=1", "m=0"]


def test_iterm2_gets_the_file_as_it_is() -> None:
    """With its size, as one sequence."""
    file = picture("JPEG")
    drawn = pictures.drawn(file, "iterm2", columns=30)
    assert drawn == (
        f"\x1b]1337;File=inline=1;size={len(file)};preserveAspectRatio=1:{base64.b64encode(file).decode()}\a\n"
    )


@pytest.mark.parametrize("protocol", ["kitty", "iterm2", "sixel"])
def test_what_is_no_picture_draws_nothing(protocol: pictures.Protocol) -> None:
    """An SVG or a PDF is only named by its path."""
    assert pictures.drawn(b"<svg/>", protocol, columns=30) == ""


def png_header(wide: int, high: int) -> bytes:
    """Return the beginning of a PNG of a size."""
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + wide.to_bytes(4, "big") + high.to_bytes(4, "big")


@pytest.mark.parametrize("protocol", ["kitty", "iterm2", "sixel"])
@pytest.mark.parametrize(
    "file",
    [
        b"\x89PNG\x1b]52;c;x\x07",
        png_header(60_000, 60_000) + bytes(100),
        png_header(1, 20_000) + bytes(100),
        png_header(0, 0),
        picture() + bytes(11_000_000),
    ],
)
def test_picture_that_lies_or_is_too_large_draws_nothing(file: bytes, protocol: pictures.Protocol) -> None:
    """A few bytes may unpack to gigabytes, in the terminal too."""
    assert pictures.drawn(file, protocol, columns=30) == ""


@pytest.mark.parametrize("file", [b"\xff\xd8\x1b[2J", picture("JPEG")[:200], png_header(40, 13) + bytes(9)])
def test_picture_that_cannot_be_decoded_draws_nothing(file: bytes) -> None:
    """Whatever the decoder makes of it; a chat goes on."""
    assert pictures.drawn(file, "sixel", columns=30) == ""


def test_sequence_around_a_picture_holds_none_of_its_bytes() -> None:
    """They go in base64, so that nothing in them ends the sequence early."""
    file = picture() + b"\x1b\\\x07\x1b]52;c;x\x07"
    for protocol in ("kitty", "iterm2", "sixel"):
        drawn = pictures.drawn(file, protocol, columns=30)  # type: ignore[arg-type]
        assert "]52" not in drawn


def test_jpeg_is_drawn_in_kitty_too() -> None:
    """It takes PNG alone."""
    assert pictures.drawn(picture("JPEG"), "kitty", columns=30).startswith("\x1b_Ga=T,f=100")


def test_sixels_draw_each_pixel_once() -> None:
    """Read back as a terminal does, they are the picture."""
    image = Image.open(io.BytesIO(picture()))
    assert read(sixel(image, 40)) == [
        ["blue" if x >= 20 and y >= 6 else "red" for x in range(40)] for y in range(13)
    ]


def test_sixels_of_a_wide_picture_are_made_to_fit() -> None:
    """Its shape is kept."""
    image = Image.open(io.BytesIO(picture(size=(400, 130))))
    rows = read(sixel(image, 40))
    assert (len(rows[0]), len(rows)) == (40, 13)


def read(text: str) -> list[list[str]]:
    """Read sixels as a terminal does, into rows of colours."""
    head = re.match(r'\x1bPq"1;1;(\d+);(\d+)', text)
    assert head
    width, height = int(head[1]), int(head[2])
    rows = [[""] * width for _ in range(height)]
    names: dict[str, str] = {}
    x = y = 0
    colour = ""
    for token in re.findall(r"#\d+;2;[\d;]+|#\d+|!\d+.|[$\-?-~]", text[head.end() : text.index("\x1b\\", 2)]):
        if token.startswith("#") and ";2;" in token:
            number, _, levels = token.partition(";2;")
            red, _, blue = (int(level) for level in levels.split(";"))
            names[number] = "red" if red > blue else "blue"
        elif token.startswith("#"):
            colour = names[token]
        elif token == "$":
            x = 0
        elif token == "-":
            x, y = 0, y + 6
        else:
            times = int(token[1:-1]) if token.startswith("!") else 1
            bits = [bit for bit in range(6) if (ord(token[-1]) - 63) >> bit & 1]
            for row, column in itertools.product((y + bit for bit in bits), range(x, x + times)):
                assert rows[row][column] == "", "drawn twice"
                rows[row][column] = colour
            x += times
    return rows
