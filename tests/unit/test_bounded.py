"""Reading bytes and JSON from outside: within bounds, and with one kind of error."""

from collections.abc import AsyncIterator

import pytest

from agent.bounded import TooLargeError, collected, parsed_json


async def test_collected_stops_reading_at_its_bound() -> None:
    """All that comes, or an error once there is more; what is behind that is never asked for."""
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b"x" * 100

    with pytest.raises(TooLargeError):
        await collected(chunks(), 350)
    assert sent == 4

    async def few() -> AsyncIterator[bytes]:
        yield b"ab"
        yield b"c"

    assert await collected(few(), 3) == b"abc"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"{",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 5000,
        b'"\\ud800',
        b"[" + b"[]," * 200_001 + b"0]",
    ],
)
def test_parsed_json_raises_value_errors_alone(text: bytes) -> None:
    """However it is wrong: none, deep, of 5,000 digits, or many times its size in memory."""
    with pytest.raises(ValueError):  # noqa: PT011 - its subclasses are the parsers'
        parsed_json(text)


def test_parsed_json_counts_no_signs_within_texts() -> None:
    """A text that is full of commas and brackets is one value."""
    assert parsed_json(b'{"a": "' + b'[,:\\"' * 500_000 + b'"}')["a"].startswith('[,:"[')


def test_parsed_json_reads_a_text_without_an_end_once() -> None:
    """One of 8 MB with a quote at each other place: begun anew at each, it would take days."""
    with pytest.raises(TooLargeError):
        parsed_json(b"," * 400_001 + b'"' + b'\\"' * 4_000_000)
