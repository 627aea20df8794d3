"""List the deployment's sandboxes, and end those that nobody comes back to."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent.cli import exits
from agent.cli.screen import Screen
from agent.cli.session import Session
from agent.cli.visible import Text, one_line
from agent.client import RefusedError
from agent.errors import SandboxError, SettingsError
from agent.sandbox.reaper import Fate, Patience, Reaper, ThreadView, Verdict
from agent.settings import Settings

_STYLES = {Fate.END: "yellow", Fate.ENDED: "green", Fate.FAILED: "red"}


class _Threads:
    """The server's threads, as the reaper asks about them."""

    def __init__(self, session: Session) -> None:
        self._server = session.server

    async def view(self, thread_id: str) -> ThreadView:
        try:
            found = await self._server.standing(thread_id)
        except RefusedError as exc:
            # Another code: it refuses us, or fails, and not at this thread alone.
            if exc.status_code not in {400, 404, 422}:
                raise
            return ThreadView("unreadable")
        return ThreadView(found.standing, found.since, found.keeps)


@dataclass(frozen=True, slots=True)
class Sweep:
    """How a sweep goes about it."""

    end: bool
    """False: only say what would be ended."""
    trust_server: bool = False
    """Take the server for the deployment's, though it does not say so itself."""


def look_after(screen: Screen, session: Session, settings: Settings, sweep: Sweep) -> int:
    """Show each sandbox of the deployment and what becomes of it; return the exit code.

    Args:
        screen: where to write.
        session: the connection to the deployment's LangGraph server.
        settings: name the deployment and the sandbox service.
        sweep: whether to end those that nobody comes back to.

    Raises:
        SettingsError: there is no deployment's name, or the server is another deployment's.
    """
    if not settings.deployment:
        raise SettingsError(
            "DEPLOYMENT is not set: it names the sandboxes to look at, so that another deployment's are "
            "never touched. Set what the server has; `langgraph dev` keeps one in .langgraph_api/deployment."
        )
    if not sweep.trust_server:
        _check_server(session, settings.deployment)
    reaper = _reaper(session, settings, settings.deployment)
    found: list[Verdict] = []
    try:
        session.run(_collect(reaper.sweep() if sweep.end else reaper.look(), found))
    except SandboxError as exc:
        screen.error(str(exc))
        return exits.PLATFORM
    finally:
        # Also when the server failed in the middle: what was ended is said.
        for each in found:
            _show(screen, each)
    if not found:
        screen.line(f"The deployment {settings.deployment} has no sandboxes.")
    elif sweep.end:
        screen.line(_tally(found))
    return exits.PLATFORM if any(each.fate is Fate.FAILED for each in found) else exits.OK


async def _collect(verdicts: AsyncIterator[Verdict], found: list[Verdict]) -> None:
    async for each in verdicts:
        found.append(each)


def _check_server(session: Session, deployment: str) -> None:
    # On a wrong server no thread is known: every sandbox would look left behind.
    said = session.run(session.server.deployment())
    if said is None:
        raise SettingsError(
            f"The server {session.server.url} does not say which deployment it is, so that its word on "
            "threads cannot be trusted. Serve agent.server.webapp:app with it (`http.app` in "
            "langgraph.json), or add --trust-server if you are sure."
        )
    if said != deployment:
        raise SettingsError(
            f"The server {session.server.url} is deployment {said!r} and DEPLOYMENT is {deployment!r}: "
            "nothing was looked at. --server or LANGGRAPH_URL names another server."
        )


def _reaper(session: Session, settings: Settings, deployment: str) -> Reaper:
    from agent.wiring import sandbox_provider

    return Reaper(
        sandbox_provider(settings),
        _Threads(session),
        deployment=deployment,
        patience=Patience(
            idle=timedelta(seconds=settings.sandbox_idle_limit_s),
            human=timedelta(seconds=settings.sandbox_human_limit_s),
        ),
    )


def _show(screen: Screen, each: Verdict) -> None:
    """Write two lines: what becomes of the sandbox and why, and whose it is."""
    sandbox, fate = each.sandbox, Text(each.fate, _STYLES.get(each.fate, ""))
    screen.line(Text.assemble(f"{one_line(sandbox.sandbox_id)}  ", fate, f"  {one_line(each.reason)}"))
    thread, graph, keep = (one_line(sandbox.metadata.get(name, "?")) for name in ("thread", "graph", "keep"))
    since = sandbox.end_at if sandbox.state == "paused" else sandbox.started_at
    whose = f"    thread {thread}  {graph}  keep={keep}  {sandbox.state} since {_local(since)}"
    screen.line(whose, "dim")


def _local(moment: datetime) -> str:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def _tally(found: list[Verdict]) -> str:
    counts = {fate: sum(each.fate is fate for each in found) for fate in Fate}
    words = [f"{counts[Fate.ENDED]} ended", f"{counts[Fate.SPARE]} spared"]
    if counts[Fate.FAILED]:
        words.append(f"{counts[Fate.FAILED]} could not be ended; the next sweep tries again")
    return ", ".join(words) + "."
