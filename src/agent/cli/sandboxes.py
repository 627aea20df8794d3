"""List the deployment's sandboxes, and end those that nobody comes back to."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from rich.table import Table
from rich.text import Text

from agent.cli import exits
from agent.cli.screen import Screen
from agent.cli.session import Session
from agent.errors import SandboxError, SettingsError
from agent.sandbox.reaper import Fate, Patience, Reaper, ThreadView, Verdict
from agent.settings import Settings

_STYLES = {Fate.END: "yellow", Fate.ENDED: "green", Fate.FAILED: "red"}


class _Threads:
    """The server's threads, as the reaper asks about them."""

    def __init__(self, session: Session) -> None:
        self._server = session.server

    async def view(self, thread_id: str) -> ThreadView:
        found = await self._server.standing(thread_id)
        return ThreadView(found.standing, found.since)


def list_sandboxes(screen: Screen, session: Session, settings: Settings) -> int:
    """Show each sandbox of the deployment, and what a sweep would do with it.

    Args:
        screen: where to write.
        session: the connection to the deployment's LangGraph server.
        settings: name the deployment and the sandbox service.
    """
    return _shown(screen, session, settings, end=False)


def sweep_sandboxes(screen: Screen, session: Session, settings: Settings, *, dry_run: bool) -> int:
    """End the sandboxes that nobody comes back to, and say which; with `dry_run` only say it."""
    return _shown(screen, session, settings, end=not dry_run)


def _shown(screen: Screen, session: Session, settings: Settings, *, end: bool) -> int:
    reaper = _reaper(session, settings)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("Sandbox", "State", "Thread", "Kept for", "Since", "Fate", "Why"):
        table.add_column(column, no_wrap=column != "Why")
    found: list[Verdict] = []
    try:
        session.run(_collect(reaper.sweep() if end else reaper.look(), found))
    except SandboxError as exc:
        screen.error(str(exc))
        return exits.PLATFORM
    finally:
        # Also when the server failed in the middle: what was ended is said.
        for each in found:
            table.add_row(*_row(each))
        if found:
            screen.show(table)
    if not found:
        screen.line(f"The deployment {settings.deployment} has no sandboxes.")
    elif end:
        screen.line(_tally(found))
    return exits.PLATFORM if any(each.fate is Fate.FAILED for each in found) else exits.OK


async def _collect(verdicts: AsyncIterator[Verdict], found: list[Verdict]) -> None:
    async for each in verdicts:
        found.append(each)


def _reaper(session: Session, settings: Settings) -> Reaper:
    if not settings.deployment:
        raise SettingsError(
            "DEPLOYMENT is not set: it names the sandboxes to look at, so that another deployment's are "
            "never touched. Set what the server has; `langgraph dev` keeps one in .langgraph_api/deployment."
        )
    from agent.wiring import sandbox_provider

    return Reaper(
        sandbox_provider(settings),
        _Threads(session),
        deployment=settings.deployment,
        patience=Patience(
            idle=timedelta(seconds=settings.sandbox_idle_limit_s),
            human=timedelta(seconds=settings.sandbox_human_limit_s),
        ),
    )


def _row(each: Verdict) -> tuple[str, str, str, str, str, Text, str]:
    sandbox = each.sandbox
    since = sandbox.started_at if sandbox.state == "running" else sandbox.end_at
    return (
        sandbox.sandbox_id,
        sandbox.state,
        sandbox.metadata.get("thread", ""),
        sandbox.metadata.get("keep", ""),
        _local(since),
        Text(each.fate, _STYLES.get(each.fate, "")),
        each.reason,
    )


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
