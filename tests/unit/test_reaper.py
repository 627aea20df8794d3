"""What the reaper decides, without any service."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.sandbox.provider import SandboxInfo
from agent.sandbox.reaper import Fate, Patience, ThreadView, verdict

NOW = datetime(2030, 1, 10, tzinfo=UTC)
PATIENCE = Patience(idle=timedelta(hours=2), human=timedelta(days=2))


def sandbox(*, paused_h: float = 0, state: str = "paused", **metadata: str) -> SandboxInfo:
    """Return a listed sandbox that was paused so many hours ago."""
    paused_at = NOW - timedelta(hours=paused_h)
    named: dict[str, Any] = {"thread": "t", "keep": "run", "home": "server"} | metadata
    return SandboxInfo("i1", state, named, paused_at, paused_at)  # type: ignore[arg-type]


def waiting(hours: float) -> ThreadView:
    """Return a thread whose question was asked so many hours ago."""
    return ThreadView("waiting", NOW - timedelta(hours=hours))


UNREADABLE = ThreadView("unreadable")
GONE, BUSY, IDLE = ThreadView("gone"), ThreadView("busy"), ThreadView("idle", NOW - timedelta(days=30))


@pytest.mark.parametrize(
    ("found", "thread", "fate"),
    [
        (sandbox(state="running"), None, Fate.SPARE),
        (sandbox(state="running", paused_h=1000), GONE, Fate.SPARE),
        (sandbox(), GONE, Fate.END),
        (sandbox(keep="thread"), GONE, Fate.END),
        (sandbox(paused_h=1000), BUSY, Fate.SPARE),
        (sandbox(), IDLE, Fate.END),
        (sandbox(keep="thread", paused_h=1.9), IDLE, Fate.SPARE),
        (sandbox(keep="thread", paused_h=2.1), IDLE, Fate.END),
        (sandbox(keep="thread", paused_h=2.1), ThreadView("idle", NOW - timedelta(hours=1)), Fate.SPARE),
        (sandbox(paused_h=1), ThreadView("idle", NOW, keeps="i1"), Fate.SPARE),
        (sandbox(paused_h=3), ThreadView("idle", NOW - timedelta(hours=3), keeps="i1"), Fate.END),
        (sandbox(), ThreadView("idle", NOW, keeps="i2"), Fate.END),
        (sandbox(paused_h=47), waiting(47), Fate.SPARE),
        (sandbox(paused_h=49), waiting(49), Fate.END),
        (sandbox(keep="thread", paused_h=49), waiting(49), Fate.END),
        (sandbox(paused_h=47), UNREADABLE, Fate.SPARE),
        (sandbox(paused_h=49), UNREADABLE, Fate.END),
        (sandbox(), None, Fate.SPARE),
        (sandbox(state="running", use="verify"), GONE, Fate.SPARE),
        (sandbox(use="verify"), BUSY, Fate.END),
        (sandbox(use="verify"), waiting(1), Fate.END),
        (sandbox(use="verify", home="process"), None, Fate.END),
        (sandbox(home="process", paused_h=47), None, Fate.SPARE),
        (sandbox(home="process", paused_h=49), None, Fate.END),
    ],
)
def test_verdict_ends_only_what_nobody_comes_back_to(
    found: SandboxInfo, thread: ThreadView | None, fate: Fate
) -> None:
    """Gone, finished or too long idle ends; running, busy and waiting within the limit is spared."""
    assert verdict(found, thread, NOW, PATIENCE).fate is fate


def test_verdict_says_how_long_and_against_which_limit() -> None:
    """The reason is fit to be read by whoever wonders why a sandbox went."""
    reason = verdict(sandbox(paused_h=49), waiting(49), NOW, PATIENCE).reason
    assert reason == "its thread waits for a human for 2.04 d; the limit is 2 d"
