"""Known values are taken out of text, however a stream cuts it."""

import base64
import itertools
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.redaction.secrets import Pieces, Secrets
from agent.sandbox.environment import watched

KNOWN = {"TOKEN": "tok-1234567890", "LONGER": "tok-1234567890-more", "ODD": 'a"b\\c\nü /?&', "SHORT": "dev"}
SECRETS = Secrets(lambda: KNOWN)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("TOKEN=tok-1234567890.", "TOKEN=[TOKEN redacted]."),
        ("tok-1234567890-more", "[LONGER redacted]"),
        (json.dumps(KNOWN["ODD"]), '"[ODD redacted]"'),
        (f"?key={quote(KNOWN['ODD'], safe='')}&", "?key=[ODD redacted]&"),
        ("dev and tok-123456789", "dev and tok-123456789"),
    ],
)
def test_a_value_is_replaced_by_its_name(text: str, shown: str) -> None:
    """Plain, in JSON and in an address; too short ones and half ones stay."""
    assert SECRETS.redacted(text) == shown


def test_an_encoded_value_is_not_found() -> None:
    """Base64 passes, and docs/security.md says so (A63)."""
    encoded = base64.b64encode(KNOWN["TOKEN"].encode()).decode()
    assert SECRETS.redacted(encoded) == encoded


def test_values_are_found_in_keys_and_lists() -> None:
    """Everything a message or an event holds is looked at, and what is no text stays as it is."""
    data = {"tok-1234567890": ["x tok-1234567890", 1, None], "n": 2.5}
    assert SECRETS.redacted_deeply(data) == {"[TOKEN redacted]": ["x [TOKEN redacted]", 1, None], "n": 2.5}


PARTS = [*KNOWN.values(), "tok-", "tok-1", "-more", "0", "t", "plain ", "\n", 'a"b']


@given(st.lists(st.sampled_from(PARTS), max_size=8), st.data())
def test_a_stream_shows_what_the_whole_text_would(parts: list[str], data: st.DataObject) -> None:
    """Wherever the pieces are cut, together they read as the whole text does when redacted."""
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]
    stream = Pieces(SECRETS)
    assert "".join([*map(stream.feed, pieces), stream.end()]) == SECRETS.redacted(text)


def test_text_that_begins_no_value_is_shown_at_once() -> None:
    """Live output stays live: only what may be the beginning of a value waits."""
    stream = Pieces(SECRETS)
    assert stream.feed("50 % tok") == "50 % "
    assert stream.feed("ens\n") == "tokens\n"


async def test_what_a_sandbox_was_given_is_known() -> None:
    """A value from a vault is known before the sandbox has it, and stays known when it changes."""
    secrets = Secrets(dict)
    values = iter(["vault-value-1", "vault-value-2"])

    async def vault(owner: object, names: object) -> dict[str, str]:
        return {"VAULT": next(values)}

    environment = watched(vault, secrets)
    for _ in range(2):
        await environment(None, ["VAULT"])
    assert secrets.redacted("vault-value-1 vault-value-2") == "[VAULT redacted] [VAULT redacted]"
