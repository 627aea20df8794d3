"""Pictures in a terminal, by the protocol that the terminal itself says it speaks.

Nothing is concluded from the names in environment variables: they survive ssh, tmux and `su`. The terminal is
asked, and what does not answer in time gets no pictures.

    DA1      ESC [ c                    → ESC [ ? 62 ; 4 ; … c          4 is sixel; everything answers this
    XTVERSION ESC [ > q                 → ESC P > | iTerm2 3.5.0 ESC \\
    kitty    ESC _ G i=31,a=q,… ESC \\   → ESC _ G i=31;OK ESC \\

Sources: https://sw.kovidgoyal.net/kitty/graphics-protocol/, https://iterm2.com/documentation-images.html,
https://invisible-island.net/xterm/ctlseqs/ctlseqs.html.
"""

import fcntl
import io
import os
import re
import select
import struct
import termios
import time
import tty
from base64 import b64encode
from collections.abc import Iterator
from typing import Literal

from agent.cli.sixel import sixel

Protocol = Literal["kitty", "iterm2", "sixel"]

_PATIENCE_S = 0.6  # a terminal behind ssh answers in a round trip
_PNG = b"\x89PNG"
_JPEG = b"\xff\xd8"
_USUAL_CELL = 10
_MOST_BYTES = 10_000_000
_MOST_PIXELS = 25_000_000  # a hundred megabytes unpacked
_LONGEST_SIDE = 10_000
_CHUNK = 4096  # kitty's limit

_WHO = b"\x1b[>q\x1b[c"
_KITTY = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c"
_DA1 = re.compile(rb"\x1b\[\?([\d;]*)c")
_NAME = re.compile(rb"\x1bP>\|(.*?)\x1b\\", re.DOTALL)
_SPEAK_ITERM2 = ("iterm2", "wezterm", "mintty")


def spoken(terminal: int) -> Protocol | None:
    """Ask a terminal how it shows pictures.

    Takes a moment, and drops what is typed meanwhile.

    Args:
        terminal: file descriptor of the terminal, open for reading and writing.

    Returns:
        The best protocol it speaks; None where it speaks none, does not answer, or is no terminal.
    """
    try:
        before = termios.tcgetattr(terminal)
    except termios.error:
        return None
    try:
        tty.setcbreak(terminal, termios.TCSAFLUSH)
        who = _answer(terminal, _WHO)
        found = _DA1.search(who)
        if found is None:
            return None
        features = found[1].split(b";")
        name = _NAME.search(who)
        called = name[1].decode(errors="replace").lower() if name else ""
        # tmux would take the question for a title of its window; a console of Linux would print it.
        if called and not called.startswith("tmux") and b"Gi=31;OK" in _answer(terminal, _KITTY):
            return "kitty"
        if called.startswith(_SPEAK_ITERM2):
            return "iterm2"
        return "sixel" if b"4" in features[1:] else None
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)


def cell_width(terminal: int) -> int:
    """Return how wide a column is, in pixels; a usual width where the terminal does not say."""
    try:
        _, columns, width, _ = struct.unpack("HHHH", fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8)))
    except OSError:
        return _USUAL_CELL
    return width // columns or _USUAL_CELL if columns else _USUAL_CELL


def drawn(picture: bytes, protocol: Protocol, *, columns: int, cell: int = _USUAL_CELL) -> str:
    """Return what to write to the terminal for a picture to appear; empty where it cannot.

    Args:
        picture: a PNG or JPEG file, or whatever calls itself one.
        protocol: what the terminal speaks.
        columns: how wide it may be; a smaller picture keeps its size.
        cell: width of one column, in pixels.
    """
    if not picture.startswith((_PNG, _JPEG)) or len(picture) > _MOST_BYTES:
        return ""
    if picture.startswith(_PNG) and not _fits(picture):
        return ""
    if protocol == "iterm2":
        return _iterm2(picture)
    if protocol == "kitty" and picture.startswith(_PNG):
        wide = int.from_bytes(picture[16:20], "big")  # the header chunk begins with it
        return "".join(_kitty(picture, min(columns, -(-wide // cell))))
    try:
        from PIL import Image
    except ImportError:  # only sixel and JPEG in kitty need it, and it is not worth a dependency
        return ""
    png = io.BytesIO()
    try:
        with Image.open(io.BytesIO(picture), formats=("PNG", "JPEG")) as image:
            if not _is_drawable(image.width, image.height):
                return ""
            if protocol == "sixel":
                return sixel(image, columns * cell)
            image.save(png, "PNG")
    except Exception:  # a decoder of bytes that lie about themselves raises whatever it meets
        return ""
    return drawn(png.getvalue(), protocol, columns=columns, cell=cell)


def _fits(png: bytes) -> bool:
    """Whether a PNG's header says a size that can be drawn: a few bytes may unpack to gigabytes."""
    wide, high = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    return png[12:16] == b"IHDR" and _is_drawable(wide, high)


def _is_drawable(wide: int, high: int) -> bool:
    return 0 < wide * high <= _MOST_PIXELS and max(wide, high) <= _LONGEST_SIDE


def _answer(terminal: int, question: bytes) -> bytes:
    """Write a question that ends with DA1, and read up to the answer to that."""
    os.write(terminal, question)
    said, give_up = b"", time.monotonic() + _PATIENCE_S
    while not _DA1.search(said) and (left := give_up - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            piece = os.read(terminal, 1024)
            if not piece:
                break
            said += piece
    return said


def _kitty(png: bytes, columns: int) -> Iterator[str]:
    text = b64encode(png).decode()
    for start in range(0, len(text), _CHUNK):
        more = int(start + _CHUNK < len(text))
        head = f"a=T,f=100,q=2,c={columns},m={more}" if start == 0 else f"m={more}"
        yield f"\x1b_G{head};{text[start : start + _CHUNK]}\x1b\\"
    yield "\n"


def _iterm2(picture: bytes) -> str:
    # A picture wider than the window is made to fit it by the terminal.
    size = f"inline=1;size={len(picture)};preserveAspectRatio=1"
    return f"\x1b]1337;File={size}:{b64encode(picture).decode()}\a\n"
