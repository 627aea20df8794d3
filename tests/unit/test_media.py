"""What an image's header says of its size; nothing of the image is decoded."""

import struct

import pytest

from agent.artifacts.images import _can_be_shown
from agent.artifacts.media import size_of_image
from support.steps import steps_of

SOF = b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", 20, 30) + bytes(12)


def png(width: int, height: int) -> bytes:
    """Return the start of a PNG."""
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02\0\0\0"


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (png(30, 20), (30, 20)),
        (b"GIF89a" + struct.pack("<HH", 30, 20), (30, 20)),
        (b"\xff\xd8\xff\xe0\x00\x10" + bytes(14) + b"\xff" + SOF, (30, 20)),
        (b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x1d\0\0\x13\0\0", (30, 20)),
        (b"RIFF\0\0\0\0WEBPVP8L" + bytes(5) + (29 | 19 << 14).to_bytes(4, "little") + bytes(8), (30, 20)),
        (b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 30, 20), (30, 20)),
        (b"", None),
        (b"\x89PNG\r\n\x1a\n and so on", None),
        (b"\xff\xd8" + b"\xff" * 100_000, None),
        (b"\xff\xd8" + b"\xff\xe0\0\0" * 100_000, None),
        (b"RIFF\0\0\0\0WEBP????" + bytes(20), None),
        (b"GIF8", None),
    ],
    ids=range(12),
)
def test_size_of_image_is_read_from_its_header(data: bytes, size: tuple[int, int] | None) -> None:
    """In each format that models look at; None where it says none."""
    assert size_of_image(data) == size


def test_images_that_a_provider_refuses_are_not_shown() -> None:
    """One of 50,000 pixels, or of none, would be refused again with each later request."""
    assert _can_be_shown(png(8_000, 1))
    for wrong in (png(50_000, 50_000), png(8_001, 10), png(0, 10), b"no image"):
        assert not _can_be_shown(wrong)


@pytest.mark.parametrize("filler", [b"\xff", b"\xff\xe0\0\0"])
def test_size_of_image_is_found_or_given_up_in_few_steps(filler: bytes) -> None:
    """However much stands before the header: it is read for each request to a model."""
    assert steps_of(lambda: size_of_image(b"\xff\xd8" + filler * 1_000_000 + SOF)) < 1_000_000
    assert size_of_image(b"\xff\xd8" + b"\xff" * 1_000_000 + SOF) == (30, 20)
