"""Seals: what holds, and all that does not."""

from typing import Any

import pytest

from agent.approvals.seals import Seals

FACTS: Any = {"plan": "a", "steps": [1, 2]}


async def key() -> bytes:
    """Return a key."""
    return b"k" * 32


async def test_seal_holds_for_the_same_facts_in_every_process_with_the_key() -> None:
    """Order of keys and kind of list are no facts: a checkpoint may change both."""
    seal = await Seals(key).seal("plan", "thread", FACTS)
    assert await Seals(key).holds(seal, "plan", "thread", {"steps": (1, 2), "plan": "a"})


@pytest.mark.parametrize(
    ("purpose", "thread", "facts"),
    [
        ("decision", "thread", FACTS),
        ("plan", "other", FACTS),
        ("plan", "thread", {**FACTS, "plan": "b"}),
        ("plan", "thread", None),
        ("plan", "thread", "half \ud800"),
    ],
)
async def test_seal_holds_for_nothing_else(purpose: str, thread: str, facts: Any) -> None:
    """Another purpose, thread or fact has another seal."""
    seals = Seals(key)
    assert not await seals.holds(await seals.seal("plan", "thread", FACTS), purpose, thread, facts)


@pytest.mark.parametrize("seal", [None, "", "0" * 64, b"x", 5, {}, "é" * 64, "\ud800"])
async def test_what_is_no_seal_does_not_hold(seal: object) -> None:
    """Whatever a client wrote in its place, without an exception."""
    assert not await Seals(key).holds(seal, "plan", "thread", FACTS)


async def test_seals_without_a_key_hold_only_where_they_were_made() -> None:
    """Each has a random key of its own."""
    seals = Seals()
    seal = await seals.seal("plan", "thread", FACTS)
    assert await seals.holds(seal, "plan", "thread", FACTS)
    assert not await Seals().holds(seal, "plan", "thread", FACTS)
