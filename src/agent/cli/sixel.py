"""A picture as sixels, the way DEC's VT340 drew them.

Each band of six rows is written once a colour: a character holds six pixels above each other, bit 0 the
highest, plus `?`; `$` goes back to the band's begin, `-` to the next band, `!n` repeats.

Source: https://vt100.net/docs/vt3xx-gp/chapter14.html.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

_COLOURS = 128
_RUN = re.compile(r"(.)\1{3,}")


def sixel(image: "Image.Image", widest: int) -> str:
    """Return an image as sixels, made smaller when it is wider than `widest` pixels."""
    from PIL import Image

    flat = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA")).convert("RGB")
    if flat.width > widest:
        flat = flat.resize((widest, max(1, round(flat.height * widest / flat.width))))
    few = flat.quantize(_COLOURS)
    palette = few.getpalette() or []
    colours = "".join(
        f"#{number};2;{';'.join(str(round(part / 2.55)) for part in palette[3 * number : 3 * number + 3])}"
        for number in range(len(palette) // 3)
    )
    bands = "-".join(_bands(few.width, few.height, few.tobytes()))
    return f'\x1bPq"1;1;{few.width};{few.height}{colours}{bands}\x1b\\\n'


def _bands(width: int, height: int, pixels: bytes) -> Iterator[str]:
    for top in range(0, height, 6):
        rows = [pixels[row * width : (row + 1) * width] for row in range(top, min(top + 6, height))]
        yield "$".join(f"#{colour}{_line(rows, colour, width)}" for colour in sorted(set(b"".join(rows))))


def _line(rows: list[bytes], colour: int, width: int) -> str:
    bits = bytearray(width)
    for bit, row in enumerate(rows):
        mask = 1 << bit
        at = row.find(colour)
        while at >= 0:
            bits[at] |= mask
            at = row.find(colour, at + 1)
    line = bytes(63 + value for value in bits).decode("ascii").rstrip("?")
    return _RUN.sub(lambda found: f"!{len(found[0])}{found[1]}", line)
