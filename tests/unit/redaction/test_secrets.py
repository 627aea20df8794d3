"""Known values are taken out of text, however a stream cuts it."""

import asyncio
import base64
import itertools
import json
import threading
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.redaction.secrets import CHARS_AT_ONCE, Pieces, Secrets, _Forms
from agent.sandbox.environment import watched
from support.steps import steps_of

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


def test_a_long_text_is_searched_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten megabytes at once would let no other thread work; a value on a seam is found all the same."""
    sizes: list[int] = []
    searched = _Forms.redacted

    def noted(self: _Forms, text: str, *, goes_on: bool = False) -> tuple[str, str]:
        sizes.append(len(text))
        return searched(self, text, goes_on=goes_on)

    monkeypatch.setattr(_Forms, "redacted", noted)
    seam = "x" * (CHARS_AT_ONCE - 5) + KNOWN["TOKEN"]
    whole = (seam + "y" * (CHARS_AT_ONCE - len(KNOWN["TOKEN"]) + 5)) * 76
    shown = SECRETS.redacted(whole)
    assert shown == whole.replace(KNOWN["TOKEN"], "[TOKEN redacted]")
    assert max(sizes) < 2 * CHARS_AT_ONCE


@pytest.mark.parametrize("value", ["k" * 4_000, "ab" * 2_000, "-----BEGIN KEY-----\n" + "x" * 4_000])
def test_a_long_value_takes_few_steps_for_each_piece_of_a_stream(value: str) -> None:
    """As many as it has characters, and not the square of it, also where it looks like itself."""

    def steps(value: str) -> int:
        stream = Pieces(Secrets(lambda: {"KEY": value}))
        stream.feed("")
        return steps_of(lambda: [stream.feed(value[:-1]), stream.feed(value[:-1])])

    assert steps(value * 2) < 2.5 * steps(value)


def test_many_values_are_all_found_and_the_longest_first() -> None:
    """Hundreds that begin alike, one within another, and characters that patterns mean something by."""
    values = {f"V{n}": f"sk-proj-{n}(.*)[{'a' * (n % 7)}" for n in range(500)} | {"P": "sk-proj-"}
    secrets = Secrets(lambda: values)
    text = " ".join(values.values())
    assert secrets.redacted(text) == " ".join(f"[{name} redacted]" for name in values)


async def test_secrets_may_be_remembered_while_another_thread_redacts() -> None:
    """Sandboxes are given values while the results of others are looked through."""
    secrets = Secrets(dict)
    done = threading.Event()

    def remember() -> None:
        for n in itertools.count():
            secrets.remember({"V": f"value-{n % 20:06}"})
            if done.is_set() and n > 20:
                break

    worker = asyncio.create_task(asyncio.to_thread(remember))
    try:
        for n in range(200):
            secrets.redacted(f"x value-{n % 20:06} y")
    finally:
        done.set()
        await worker
    assert secrets.redacted("value-000007") == "[V redacted]"
