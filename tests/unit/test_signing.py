"""Signed addresses permit what they were signed for, and nothing else."""

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.server.signing import Purpose, Signer, signer
from agent.settings import Settings

SIGNER = Signer(b"a key of the test's", ttl_s=60)
WORDS = st.text(min_size=1, max_size=20)
PURPOSES = st.sampled_from(("artifact", "upload"))


def parts(address: str) -> tuple[str, str, str, str, str]:
    """Return purpose, thread, name, expiry and signature as a server reads them."""
    url = urlsplit(address)
    _, folder, thread, name = url.path.split("/")
    query = parse_qs(url.query)
    return (
        folder.removesuffix("s"),
        unquote(thread),
        unquote(name),
        query["expires"][0],
        query["signature"][0],
    )


@given(PURPOSES, WORDS, WORDS)
def test_an_address_permits_what_it_was_signed_for_until_it_expires(
    purpose: Purpose, thread: str, name: str
) -> None:
    """Valid for its 60 seconds and not one more, whatever characters are in it."""
    address = SIGNER.address("http://x", purpose, thread, name, now=1000)
    *said, expires, signature = parts(address)
    assert said == [purpose, thread, name]
    for now, verdict in ((1000, "valid"), (1059, "valid"), (1060, "expired")):
        assert SIGNER.check(
            purpose, thread, name, expires=expires, signature=signature, now=now
        ) == verdict  # fmt: skip


@pytest.mark.parametrize("changed", range(5))
def test_an_address_changed_in_any_part_permits_nothing(changed: int) -> None:
    """Another purpose, thread, name, later expiry or signature is wrong, not expired."""
    said = list(parts(SIGNER.address("http://x", "artifact", "thread", "a.png", now=1000)))
    said[changed] = "upload" if changed == 0 else said[changed] + "0"
    purpose, thread, name, expires, signature = said
    assert SIGNER.check(
        purpose, thread, name, expires=expires, signature=signature, now=1000  # type: ignore[arg-type]
    ) == "wrong"  # fmt: skip


@pytest.mark.parametrize(("expires", "signature"), [("", ""), ("soon", "ü"), ("99999999999", "A" * 43)])
def test_nonsense_is_wrong_and_no_error(expires: str, signature: str) -> None:
    """What is not an address of ours at all is refused in the same way."""
    assert SIGNER.check("artifact", "t", "n", expires=expires, signature=signature) == "wrong"


async def test_a_key_that_is_not_set_is_made_once_and_kept(tmp_path: Path) -> None:
    """Two processes on one disk sign alike; nobody else can read the key."""
    kept = tmp_path / "new" / "key"
    first, second = [await signer(Settings.from_env({}), kept) for _ in range(2)]
    assert first == second
    assert len(first.key) == 64
    assert kept.stat().st_mode & 0o077 == 0
    set_in_settings = await signer(Settings.from_env({"ARTIFACT_KEY": "0123456789abcdef"}), kept)
    assert set_in_settings.key == b"0123456789abcdef"
