"""Numbers and addresses in headers, whatever they say."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from e2b_local.errors import ApiError
from e2b_local.headers import sandbox_address, whole_number


def _host(host: str) -> tuple[str, int] | None:
    # As they arrive: bytes of any value but those that end a line.
    return sandbox_address(Headers(raw=[(b"host", host.encode("latin-1"))]))


@given(st.text())
def test_whole_number_takes_digits_or_nothing(text: str) -> None:
    """Any text gives a number that is spelt with ASCII digits alone, or None; it never fails."""
    number = whole_number(text)
    assert number is None or (text.isascii() and text.isdigit() and number == int(text))


@pytest.mark.parametrize("text", ["", "²", "٤", "-1", "+1", " 1", "1 ", "1_0", "1e3", "0x1", "1\n", "9" * 11])
def test_whole_number_is_no_other_spelling(text: str) -> None:
    """What `int` or `str.isdigit` would take, and what has no end, is None."""
    assert whole_number(text) is None


_LATIN = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"))


@given(_LATIN)
def test_an_address_is_read_or_refused(host: str) -> None:
    """Any Host leads to the control plane, to a port that there can be, or to an error for the client."""
    with contextlib.suppress(ApiError):
        address = _host(host)
        assert address is None or (address[0].isascii() and 1 <= address[1] <= 65535)


@given(_LATIN, st.text("0123456789²-", max_size=6))
def test_an_address_by_headers_is_read_or_refused(sandbox_id: str, port: str) -> None:
    """The two headers lead to a port that there can be, or to an error for the client."""
    raw = [(b"e2b-sandbox-id", sandbox_id.encode("latin-1")), (b"e2b-sandbox-port", port.encode("latin-1"))]
    with contextlib.suppress(ApiError):
        assert sandbox_address(Headers(raw=raw)) == (sandbox_id, int(port))


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("8000-abc1.localhost:49000", ("abc1", 8000)),
        ("8000-ABC1.LOCALHOST", ("abc1", 8000)),
        ("49999-abc.example.com", ("abc", 49999)),
        ("localhost:49000", None),
        ("127.0.0.1:49000", None),
        ("[::1]:49000", None),
        ("my-machine.lan", None),
        ("", None),
    ],
)
def test_an_address_is_the_first_part_of_the_host(host: str, address: tuple[str, int] | None) -> None:
    """PORT-ID and any domain is a sandbox's, in any case of letters; other hosts are the server's own."""
    assert _host(host) == address


@pytest.mark.parametrize(
    "host",
    [
        "49999-²-id.host",
        "²-id.localhost",
        "-5-id.localhost",
        "0-id.localhost",
        "65536-id.localhost",
        "99999999999999999999-id.localhost",
        "49999-99999999999999999999-id.localhost",
        "49999-.localhost",
        "id.localhost",
        "é",
    ],
)
def test_an_address_that_is_none_is_refused(host: str) -> None:
    """What is meant for a sandbox and has no port or no id is a 400, not a question to the control plane."""
    with pytest.raises(ApiError) as caught:
        _host(host)
    assert caught.value.status == 400
