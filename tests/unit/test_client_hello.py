"""The server's name in the greeting of a TLS connection, as OpenSSL sends it and in pieces, and rubbish."""

import contextlib
import ssl
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2b_local.client_hello import server_name


def _hello(name: str | None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.maximum_version = version
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


def _in_records(hello: bytes, size: int) -> bytes:
    body = hello[5:]
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"\x16\x03\x01" + struct.pack("!H", len(piece)) + piece for piece in pieces)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_name_is_read(version: ssl.TLSVersion) -> None:
    """Once the greeting is complete, and not before; whatever comes after it."""
    hello = _hello("shop.example", version)
    assert server_name(hello) == "shop.example"
    assert server_name(hello + b"more") == "shop.example"
    assert {server_name(hello[:end]) for end in range(1, len(hello))} == {None}


@pytest.mark.parametrize("size", [1, 40])
def test_the_name_is_read_from_many_records(size: int) -> None:
    """A greeting may lie in several."""
    assert server_name(_in_records(_hello("shop.example"), size)) == "shop.example"


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00",
        b"\x16\x03\x01\x00\x04\x01\x00\x00\x00",
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\xff",
        _hello(None),
        _hello("shop.example").replace(b"shop", b"sh\xff\x00"),
    ],
)
def test_what_names_no_server_is_refused(said: bytes) -> None:
    """Another protocol, another message, a broken one, one without a name or with one that is no text."""
    with pytest.raises(ValueError, match=r"\w"):
        server_name(said)


@given(st.binary(min_size=1, max_size=200), st.integers(0, 300))
def test_rubbish_gives_a_name_nothing_or_one_error(rubbish: bytes, start: int) -> None:
    """Alone or within a greeting."""
    hello = _hello("shop.example")
    for said in (rubbish, b"\x16" + rubbish, hello[:start] + rubbish + hello[start + len(rubbish) :]):
        with contextlib.suppress(ValueError):
            assert isinstance(server_name(said), str | None)
