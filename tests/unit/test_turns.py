"""Calls take turns, and give them up however they end."""

import asyncio
import threading

import pytest

from agent.sandbox.turns import Turns


async def took(turns: Turns, name: str, *after: str, trail: list[str], delay_s: float = 0) -> None:
    """Note the call once it has its turn."""
    await asyncio.sleep(delay_s)
    async with turns.turn(name, after):
        trail.append(name)
        await asyncio.sleep(0)
        trail.append(name)


async def test_turns_keep_an_order_in_which_calls_do_not_come() -> None:
    """The last comes first and waits for the others; no two overlap."""
    trail: list[str] = []
    turns = Turns()
    await asyncio.gather(
        took(turns, "c", "a", "b", trail=trail),
        took(turns, "b", "a", trail=trail, delay_s=0.01),
        took(turns, "a", trail=trail, delay_s=0.02),
    )
    assert trail == ["a", "a", "b", "b", "c", "c"]


async def test_turns_do_not_wait_for_a_call_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an interruption the earlier calls have run already."""
    monkeypatch.setattr("agent.sandbox.turns.ARRIVAL_S", 0.01)
    trail: list[str] = []
    await took(Turns(), "b", "a", trail=trail)
    assert trail == ["b", "b"]


async def test_turns_pass_on_when_a_call_is_cancelled_or_fails() -> None:
    """Neither while it waits nor while it runs does a call take its turn along."""
    turns = Turns()
    trail: list[str] = []

    async def for_ever() -> None:
        async with turns.turn("a"):
            await asyncio.Event().wait()

    running = asyncio.create_task(for_ever())
    waiting = asyncio.create_task(took(turns, "b", "a", trail=trail))
    last = asyncio.create_task(took(turns, "c", "a", "b", trail=trail))
    await asyncio.sleep(0.01)
    waiting.cancel()
    running.cancel()
    await last
    assert trail == ["c", "c"]
    with pytest.raises(ValueError, match="x"):
        async with turns.turn("d"):
            raise ValueError("x")
    await took(turns, "e", "d", trail=trail)
    assert trail[2:] == ["e", "e"]


async def test_turns_serve_two_event_loops() -> None:
    """A handle may be used from several; neither disturbs the other (A51)."""
    turns = Turns()
    trails: list[list[str]] = [[], []]

    async def both(trail: list[str]) -> None:
        await asyncio.gather(took(turns, "a", trail=trail), took(turns, "b", "a", trail=trail))

    other = threading.Thread(target=lambda: asyncio.run(both(trails[1])))
    other.start()
    await both(trails[0])
    await asyncio.to_thread(other.join)
    assert trails == [["a", "a", "b", "b"]] * 2
