"""The service says how long to wait: that long is waited, within bounds, and clients are told."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from agent.errors import SandboxError, SandboxQuotaError, SandboxRateLimitError
from agent.sandbox import retries
from agent.sandbox.e2b import E2BProvider
from agent.sandbox.e2b.errors import seconds_of
from agent.sandbox.live import box
from agent.sandbox.manager import SandboxManager
from agent.sandbox.owners import Owner
from agent.sandbox.policy import SandboxPolicy
from agent.sandbox.retries import MAX_ADVISED_S, Retries
from agent.settings import Settings
from server.sandbox.conftest import MakeManager
from support.e2b_process import E2BLocal

CONCURRENT = "you have reached the maximum number of concurrent E2B sandboxes (20)"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the waits that `Retries` makes, which pass at once."""
    made: list[float] = []

    async def sleep(delay_s: float) -> None:
        made.append(delay_s)

    class _Asyncio:
        def __getattr__(self, name: str) -> Any:
            return sleep if name == "sleep" else getattr(asyncio, name)

    monkeypatch.setattr(retries, "asyncio", _Asyncio())
    return made


def refuse(sandboxes: E2BLocal, match: str, *advice: str, status: int = 429, **more: Any) -> None:
    """Let the service refuse a request once for each advice."""
    for each in advice:
        headers = {"Retry-After": each, "Should-Retry": "true"}
        sandboxes.inject("status", match, status=status, headers=headers, **more)


CREATE = "POST /v2/sandboxes$"


@pytest.mark.parametrize("status", [429, 503])
async def test_refused_request_waits_as_long_as_it_is_told(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, waits: list[float], status: int
) -> None:
    """8 seconds, then 20: each is waited in full and hardly longer, then the request goes through."""
    refuse(sandboxes, CREATE, "8", "20", status=status)
    manager = make_manager()
    acquired = await manager.acquire(owner, "")
    assert [8 <= waits[0] <= 9, 20 <= waits[1] <= 21, len(waits)] == [True, True, 2]
    await manager.release(owner, acquired.sandbox_id)


@pytest.mark.parametrize("match", ["GET .*/files", "Filesystem/ListDir", "process.Process/Start"])
async def test_rate_limit_inside_a_sandbox_is_waited_out(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, waits: list[float], match: str
) -> None:
    """A file, a listing and the start of a command are sent again: what was refused did not happen."""
    manager = make_manager()
    acquired = await manager.acquire(owner, "")
    one = box(acquired.handle)
    refuse(sandboxes, match, "7")
    assert (await one.run_command("echo -n x >> /tmp/ran; cat /tmp/ran", timeout_s=30)).stdout == "x"
    assert await one.read_file("/tmp/ran") == b"x"
    assert await one.list_files("/etc")
    assert [7 <= wait <= 8 for wait in waits] == [True]
    await manager.release(owner, acquired.sandbox_id)


async def test_rate_limited_cell_is_not_sent_again_and_said_not_to_have_run(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, waits: list[float]
) -> None:
    """Code is never repeated; the error says that it did not run, and does not end the run."""
    manager = make_manager()
    acquired = await manager.acquire(owner, "")
    refuse(sandboxes, "/execute", "3")
    with pytest.raises(SandboxError, match="The cell did not run") as raised:
        await box(acquired.handle).run_code("1", timeout_s=30)
    assert type(raised.value) is SandboxError
    assert waits == []
    await manager.release(owner, acquired.sandbox_id)


@pytest.mark.parametrize("advice", ["121", "86400", "9999999999", "Wed, 01 Jan 2200 00:00:00 GMT"])
async def test_longer_wait_than_is_taken_is_one_clear_error(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, waits: list[float], advice: str
) -> None:
    """Nothing is waited in vain: the error says how long the service asks for."""
    refuse(sandboxes, CREATE, advice)
    with pytest.raises(SandboxRateLimitError, match=r"asks to wait \d+ s, and a run waits at most 120 s"):
        await make_manager().acquire(owner, "")
    assert waits == []


async def test_waits_are_bounded_in_all(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, waits: list[float]
) -> None:
    """A service that asks for 50 seconds each time is waited for twice."""
    refuse(sandboxes, CREATE, "50", times=1_000)
    with pytest.raises(SandboxRateLimitError):
        await make_manager().acquire(owner, "")
    assert (len(waits), sum(waits) < MAX_ADVISED_S) == (2, True)


@pytest.mark.parametrize("advice", ["", "soon", "-5", "1e3", "８", "0", "Thu, 99 Foo 2026"])
async def test_advice_that_says_nothing_leaves_the_usual_pauses(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, waits: list[float], advice: str
) -> None:
    """Garbage neither fails nor makes it hurry: a pause, a further try."""
    refuse(sandboxes, CREATE, advice.encode().decode("latin-1"))
    manager = make_manager()
    acquired = await manager.acquire(owner, "")
    assert (len(waits), 0 < waits[0] < 1) == (1, True)
    await manager.release(owner, acquired.sandbox_id)


def test_retry_after_is_read_in_both_forms() -> None:
    """Seconds, or a date by the answer's own clock; one that is over means no wait (RFC 9110, 10.2.3)."""
    date, later = "Tue, 01 Dec 2026 10:00:00 GMT", "Tue, 01 Dec 2026 10:00:30 GMT"
    assert [seconds_of(" 8 "), seconds_of("2.5"), seconds_of(later, date)] == [8.0, 2.5, 30.0]
    assert [seconds_of(date, later), seconds_of(None), seconds_of("later")] == [0.0, None, None]
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 50 < (seconds_of(soon, "no date") or 0) <= 60


async def test_rate_limit_is_not_called_the_accounts_quota(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, waits: list[float]
) -> None:
    """A limit of pace is named as one; a limit of running sandboxes as the account's."""
    refuse(sandboxes, CREATE, "", times=6, message="too many requests")
    with pytest.raises(SandboxRateLimitError, match="takes no more requests for the moment") as raised:
        await make_manager().acquire(owner, "")
    assert "account" not in str(raised.value)
    sandboxes.clear_faults()
    refuse(sandboxes, CREATE, "1", times=6, message=CONCURRENT)
    with pytest.raises(SandboxQuotaError, match="a limit of the sandbox account is reached"):
        await make_manager().acquire(owner, "")


class _State(TypedDict):
    sandbox_id: str


async def test_clients_are_told_of_an_advised_wait(
    settings: Settings, owner: Owner, sandboxes: E2BLocal
) -> None:
    """On the `custom` stream, before the wait: how long, and why."""

    async def deployment() -> str:
        return "manager-tests"

    manager = SandboxManager(
        E2BProvider(settings), policy=SandboxPolicy(), deployment=deployment, retries=Retries()
    )

    async def node(state: _State) -> _State:
        return {"sandbox_id": (await manager.acquire(owner, "")).sandbox_id}

    graph = StateGraph(_State).add_node("node", node).add_edge(START, "node").add_edge("node", END).compile()
    refuse(sandboxes, CREATE, "2")
    began, events = time.monotonic(), []
    async for event in graph.astream({"sandbox_id": ""}, stream_mode="custom"):
        events.append((event, time.monotonic() - began))
    ((event, after_s),) = events
    assert (event["type"], event["event"]) == ("sandbox", "waiting")
    assert "Waiting 2 s" in event["message"] or "Waiting 3 s" in event["message"]
    assert "takes no more requests" in event["message"]
    assert time.monotonic() - began >= 2 > after_s
    (found,) = [one for one in sandboxes.alive() if one["metadata"].get("thread") == owner.thread]
    await manager.release(owner, found["sandboxID"])
