"""The reaper on the real SDK: it ends what nobody comes back to, and nothing else."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from e2b_code_interpreter import AsyncSandbox

from agent.errors import SandboxUnreachableError
from agent.sandbox.e2b import E2BProvider
from agent.sandbox.owners import Owner
from agent.sandbox.reaper import Fate, Patience, Reaper, ThreadView
from agent.sandbox.retries import Retries
from agent.settings import Settings
from server.sandbox.conftest import MakeManager
from support.alive import alive
from support.e2b_process import E2BLocal

IMPATIENT = Retries((0.01, 0.02, 0.05), (0.01, 0.02, 0.05))


class Threads:
    """A LangGraph server that knows these threads; the others are gone."""

    def __init__(self, **known: ThreadView) -> None:
        self.known = {name.replace("_", "-"): view for name, view in known.items()}

    async def view(self, thread_id: str) -> ThreadView:
        """Say how a thread stands."""
        return self.known.get(thread_id, ThreadView("gone"))


def reaper(settings: Settings, threads: Threads, deployment: str = "reaped") -> Reaper:
    """Return a reaper that counts everything paused as paused for an hour."""
    return Reaper(
        E2BProvider(settings),
        threads,
        deployment=deployment,
        retries=IMPATIENT,
        patience=Patience(idle=timedelta(minutes=30), human=timedelta(hours=2)),
        clock=lambda: datetime.now(UTC) + timedelta(hours=1),
    )


async def swept(reaper: Reaper) -> dict[str, Fate]:
    """Return what became of each sandbox."""
    return {each.sandbox.sandbox_id: each.fate async for each in reaper.sweep()}


@pytest.fixture
def settings(sandboxes: E2BLocal) -> Settings:
    """A deployment of its own: a sweep sees no other test's sandboxes."""
    return Settings.from_env({**sandboxes.env, "DEPLOYMENT": "reaped"})


async def make(
    make_manager: MakeManager, thread: str, *, keep: str = "run", paused: bool = True, home: str = "server"
) -> str:
    """Make a thread's sandbox as a run that could not end it left it; return its id."""
    manager = make_manager(keep=keep)
    owner = Owner("agent", thread, f"run-{thread}", f"task-{thread}", home=home)  # type: ignore[arg-type]
    acquired = await manager.acquire(owner, "")
    if paused:
        await manager.rest(owner.run)
    return acquired.sandbox_id


async def test_sweep_ends_what_nobody_comes_back_to(
    make_manager: MakeManager, settings: Settings, sandboxes: E2BLocal
) -> None:
    """Deleted thread, finished run, idle beyond the limit: ended. Everything else is left as it was (A58)."""
    long_ago, now = datetime.now(UTC) - timedelta(hours=3), datetime.now(UTC)
    threads = Threads(
        busy=ThreadView("busy"),
        done=ThreadView("idle", now),
        kept=ThreadView("idle", now + timedelta(minutes=45)),
        kept_long=ThreadView("idle", now),
        asked=ThreadView("waiting", now),
        asked_long=ThreadView("waiting", long_ago),
        working=ThreadView("busy"),
    )
    ended = {
        await make(make_manager, "deleted"),
        await make(make_manager, "done"),
        await make(make_manager, "kept-long", keep="thread"),
        await make(make_manager, "asked-long"),
    }
    spared = {
        await make(make_manager, "busy"),
        await make(make_manager, "kept", keep="thread"),
        await make(make_manager, "asked"),
        await make(make_manager, "working", paused=False),
        await make(make_manager, "gone-but-running", paused=False),
        await make(make_manager, "process-1", home="process"),
    }
    looked = {each.sandbox.sandbox_id: each.fate async for each in reaper(settings, threads).look()}
    assert looked == dict.fromkeys(ended, Fate.END) | dict.fromkeys(spared, Fate.SPARE)
    assert len(await alive(sandboxes, deployment="reaped")) == len(ended | spared)
    assert await swept(reaper(settings, threads)) == dict.fromkeys(ended, Fate.ENDED) | dict.fromkeys(
        spared, Fate.SPARE
    )
    left = await alive(sandboxes, deployment="reaped")
    assert {info.sandbox_id for info in left} == spared
    assert await swept(reaper(settings, threads)) == dict.fromkeys(spared, Fate.SPARE)
    for sandbox_id in spared:
        await AsyncSandbox.kill(sandbox_id, **sandboxes.options)


async def test_sweep_never_touches_another_deployment(
    make_manager: MakeManager, settings: Settings, sandboxes: E2BLocal
) -> None:
    """Sandboxes on the same key that name another deployment, or none, are not even looked at."""
    theirs = await make(make_manager, "theirs")
    bare = await AsyncSandbox.create(**sandboxes.options)
    await bare.pause()
    sandboxes.inject("delay", f"(GET|POST|DELETE) /.*({theirs}|{bare.sandbox_id})", times=1_000)
    assert await swept(reaper(settings, Threads(), deployment="another")) == {}
    assert sandboxes.faults()[0]["hits"] == 0
    assert await swept(reaper(settings, Threads())) == {theirs: Fate.ENDED}
    assert await AsyncSandbox.kill(bare.sandbox_id, **sandboxes.options)


async def test_two_sweeps_at_once_do_no_harm(make_manager: MakeManager, settings: Settings) -> None:
    """Both end without an error, and each sandbox is ended."""
    made = {await make(make_manager, f"double-{number}") for number in range(4)}
    first, second = await asyncio.gather(
        swept(reaper(settings, Threads())), swept(reaper(settings, Threads()))
    )
    assert first.keys() | second.keys() == made
    assert {*first.values(), *second.values()} == {Fate.ENDED}


async def test_sweep_spares_a_sandbox_somebody_came_back_to(
    make_manager: MakeManager, settings: Settings, sandboxes: E2BLocal
) -> None:
    """Woken between the verdict and the kill: a last look sees it."""
    made = await make(make_manager, "returning")

    class Waking(Threads):
        async def view(self, thread_id: str) -> ThreadView:
            await AsyncSandbox.connect(made, timeout=60, **sandboxes.options)
            return await super().view(thread_id)

    assert await swept(reaper(settings, Waking())) == {made: Fate.SPARE}
    assert await AsyncSandbox.kill(made, **sandboxes.options)


async def test_sweep_goes_on_when_one_cannot_be_ended(
    make_manager: MakeManager, settings: Settings, sandboxes: E2BLocal
) -> None:
    """The failure is reported, the others are ended, and the next sweep ends it (A12)."""
    stuck, other = await make(make_manager, "stuck"), await make(make_manager, "other")
    sandboxes.inject("status", f"DELETE /sandboxes/{stuck}", status=503, times=1_000)
    assert await swept(reaper(settings, Threads())) == {stuck: Fate.FAILED, other: Fate.ENDED}
    sandboxes.clear_faults()
    assert await swept(reaper(settings, Threads())) == {stuck: Fate.ENDED}


async def test_sweep_ends_nothing_without_the_servers_word(
    make_manager: MakeManager, settings: Settings, sandboxes: E2BLocal
) -> None:
    """A LangGraph server, or a sandbox service, that does not answer ends the sweep, and no sandbox."""
    made = await make(make_manager, "unknown")

    class Silent(Threads):
        async def view(self, thread_id: str) -> ThreadView:
            raise ConnectionError("no answer")

    with pytest.raises(ConnectionError):
        await swept(reaper(settings, Silent()))
    sandboxes.inject("status", "GET /v2/sandboxes", status=503, times=1_000)
    with pytest.raises(SandboxUnreachableError):
        await swept(reaper(settings, Threads()))
    sandboxes.clear_faults()
    assert len(await alive(sandboxes, deployment="reaped")) == 1
    assert await swept(reaper(settings, Threads())) == {made: Fate.ENDED}


def test_a_reaper_needs_the_deployments_name(settings: Settings) -> None:
    """Without one it would look at everybody's sandboxes."""
    with pytest.raises(ValueError, match="deployment"):
        reaper(settings, Threads(), deployment="")
