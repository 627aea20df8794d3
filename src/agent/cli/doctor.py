"""Look at everything a run needs, and say what to do about what is missing."""

import asyncio
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Literal

import httpx
from rich.table import Table

from agent.cli import exits
from agent.cli.git import find_git
from agent.cli.local_run import can_isolate
from agent.cli.processes import LocalServerError
from agent.cli.project import find_config
from agent.cli.screen import Screen
from agent.cli.serve import refuse_unknown_tools
from agent.cli.servers import INSTALL_EXTRA, NEEDED
from agent.cli.session import Session
from agent.cli.visible import Text, one_line
from agent.client import ClientError, Limits, ProtocolError
from agent.client.transport import BoundedTransport

if TYPE_CHECKING:
    from agent.settings import Settings

_NEEDED = ("langgraph", "langchain", "langchain-openai", "langgraph-sdk", "e2b", "e2b-code-interpreter")
_PATIENCE_S = 5.0
_LONGEST_FOUND = 2000  # characters
_MOST_LISTED = 10_000_000  # bytes of a list of at most 100 sandboxes
_MARKS = {"good": ("✓", "green"), "note": ("!", "yellow"), "bad": ("✗", "red")}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at; `todo` says how to mend what is not good."""

    name: str
    state: Literal["good", "note", "bad"]
    found: str
    todo: str = ""


def run_doctor(screen: Screen, settings: "Settings", session: Session) -> int:
    """Show what was found; exit code 1 when something is missing that every run needs.

    Raises:
        SettingsError: `ASK_FIRST` names no tool of the agent.
    """
    refuse_unknown_tools(settings)
    checks = list(_checks(settings, session))
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for check in checks:
        mark, style = _MARKS[check.state]
        found = Text(one_line(check.found, _LONGEST_FOUND))
        if check.todo:
            found.append(f"\n→ {check.todo}", style)
        table.add_row(Text(mark, style), check.name, found)
    screen.show(table)
    return exits.FAILED if any(check.state == "bad" for check in checks) else exits.OK


def _checks(settings: "Settings", session: Session) -> Iterator[Check]:
    yield Check("Python", "good", f"{platform.python_version()} on {platform.system()}, {sys.executable}")
    yield _packages("packages", _NEEDED, "bad", "pip install -U langgraph-e2b-agent")
    yield _packages("local servers", NEEDED, "note", f"{INSTALL_EXTRA} for demo and serve")
    yield _project()
    yield _model(settings)
    yield _sandboxes(settings, session)
    yield _isolation(settings)
    yield _git()
    yield _server(session)


def _packages(name: str, wanted: tuple[str, ...], missing: Literal["note", "bad"], todo: str) -> Check:
    found, absent = [], []
    for package in wanted:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            absent.append(package)
    if absent:
        return Check(name, missing, f"missing: {', '.join(absent)}", todo)
    return Check(name, "good", ", ".join(found))


def _project() -> Check:
    try:
        return Check("langgraph.json", "good", str(find_config()))
    except LocalServerError as exc:
        return Check("langgraph.json", "note", "not found", str(exc))


def _model(settings: "Settings") -> Check:
    if settings.model.startswith("scripted:"):
        return Check("model", "note", f"{settings.model} plays a script", "Set MODEL for a real one.")
    if settings.model.startswith("openai:") and settings.openai_api_key is None:
        todo = "Set OPENAI_API_KEY, or MODEL=scripted:repair+chat to look around without one."
        return Check("model", "note", f"{settings.model}, no key", todo)
    return Check("model", "good", settings.model)


def _sandboxes(settings: "Settings", session: Session) -> Check:
    key = settings.e2b_api_key
    if key is None:
        todo = "Set E2B_API_KEY for E2B; without it demo and serve start e2b-local."
        return Check("sandboxes", "note", "no E2B key", todo)
    base = settings.e2b_api_url or f"https://api.{settings.e2b_domain or 'e2b.app'}"
    try:
        found = session.run(asyncio.wait_for(_listed(base, key.get_secret_value()), _PATIENCE_S))
    except httpx.HTTPStatusError as exc:
        code = exc.response.status_code
        if code in {401, 403}:
            return Check("sandboxes", "bad", f"{base} refuses the key", "Set a valid E2B_API_KEY.")
        return Check("sandboxes", "bad", f"{base} answers {code}", "Try again later.")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError, TimeoutError) as exc:
        why = str(exc) or f"no answer within {_PATIENCE_S:g} s"
        return Check("sandboxes", "bad", f"{base}: {why}", "Check the network, and E2B_API_URL if it is set.")
    return Check("sandboxes", "good", f"{base} accepts the key; {found} running or paused")


async def _listed(base: str, key: str) -> int:
    """Return how many sandboxes a service lists, of the first hundred."""
    transport = BoundedTransport(httpx.AsyncHTTPTransport(), Limits(answer_bytes=_MOST_LISTED))
    async with httpx.AsyncClient(transport=transport, timeout=_PATIENCE_S) as client:
        question = f"{base}/v2/sandboxes?limit=100&state=running,paused"
        answer = await client.get(question, headers={"X-API-KEY": key})
        answer.raise_for_status()
        found = answer.json()
    if not isinstance(found, list):
        raise ValueError("it lists no sandboxes")
    return len(found)


def _isolation(settings: "Settings") -> Check:
    if settings.e2b_api_key is not None:
        return Check("isolation", "good", "sandboxes are the service's; bubblewrap is not needed")
    if can_isolate():
        return Check("isolation", "good", "bubblewrap works")
    todo = "Install bubblewrap (apt install bubblewrap), or allow it user namespaces; only for e2b-local."
    return Check("isolation", "note", "bubblewrap is missing or may not make namespaces", todo)


def _git() -> Check:
    if find_git():
        return Check("git", "good", "installed")
    return Check("git", "note", "missing", "repair honours .gitignore and applies changes only with git.")


def _server(session: Session) -> Check:
    url = session.server.url
    try:
        info = session.run(asyncio.wait_for(session.server.info(), _PATIENCE_S))
        graphs = session.run(asyncio.wait_for(session.server.graphs(), _PATIENCE_S))
    except ProtocolError as exc:
        todo = "--server or LANGGRAPH_URL names another."
        return Check("LangGraph server", "bad", f"none at {url}: {exc.problem}", todo)
    except (ClientError, TimeoutError):
        todo = "sandbox-agent serve starts one; --server or LANGGRAPH_URL names another."
        return Check("LangGraph server", "note", f"none at {url}", todo)
    version = info.get("version")
    said = one_line(version) if isinstance(version, str) else "unknown"
    found = f"{url}, langgraph-api {said}, graphs {', '.join(map(one_line, graphs))}"
    if not {"agent", "plan_execute"} <= set(graphs):
        return Check("LangGraph server", "note", found, "It does not serve this project's graphs.")
    return Check("LangGraph server", "good", found)
