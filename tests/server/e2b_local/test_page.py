"""The page on e2b-local: its tables hold every call, option and endpoint of the SDKs, and say what is so."""

from __future__ import annotations

import inspect
import pathlib
import re

import e2b
import e2b_code_interpreter
import httpx
from e2b.sandbox_async.commands.command import Commands
from e2b.sandbox_async.commands.pty import Pty
from e2b.sandbox_async.filesystem.filesystem import Filesystem
from e2b_code_interpreter import AsyncSandbox

from support.e2b_process import E2BLocal

_PAGE = pathlib.Path(__file__).parents[3] / "docs" / "e2b-local.md"
_SDK = pathlib.Path(e2b.__file__).parent
_CLASSES = {"": AsyncSandbox, "files.": Filesystem, "commands.": Commands, "pty.": Pty}
# Of every call: how long a request may take, and to which server it goes.
_EVERYWHERE = {"self", "cls", "opts", "request_timeout"}


def _rows() -> list[tuple[str, str]]:
    """Return the first two cells of each row whose second says yes, partly or no."""
    rows = [
        line.strip("| ").split(" | ") for line in _PAGE.read_text().splitlines() if line.startswith("| `")
    ]
    return [(row[0], row[1].strip("| ")) for row in rows if row[1].strip("| ") in ("yes", "partly", "no")]


def _named(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def _calls() -> dict[str, set[str]]:
    """Return the public calls of the SDKs with their options."""
    found: dict[str, set[str]] = {}
    for prefix, owner in _CLASSES.items():
        for name, member in inspect.getmembers(owner, inspect.isroutine):
            if not name.startswith("_"):
                found[prefix + name] = set(inspect.signature(member).parameters) - _EVERYWHERE
    return found


def _endpoints() -> dict[str, str]:
    """Return each endpoint of the page with what it says."""
    return {
        name: here
        for names, here in _rows()
        for name in _named(names)
        if re.match(r"[A-Z]+ /|\w+\.\w+/", name)
    }


def test_every_call_and_option_is_on_the_page() -> None:
    """And nothing that the installed SDKs do not have."""
    told: dict[str, set[str]] = {}
    for cell, _ in _rows():
        if re.search(r"`[A-Z]+ /|/", cell):
            continue
        calls, _, options = cell.partition(": ")
        for call in _named(calls):
            told.setdefault(call, set()).update(_named(options))
    actual = _calls()
    assert set(told) == set(actual)
    for call, options in actual.items():
        # A row may hold several calls, whose options are not the same.
        assert options <= told[call], call


def test_every_endpoint_is_on_the_page() -> None:
    """Those of the generated client, of the daemon's services and of the code interpreter."""
    actual = {"GET /health", "GET /files", "POST /files"}
    for path in (_SDK / "api" / "client" / "api").rglob("*.py"):
        text = path.read_text()
        if method := re.search(r'"method": "(\w+)"', text):
            url = re.search(r'"url": f?"([^"]+)"', text)
            assert url is not None
            actual.add(f"{method[1].upper()} {re.sub(r'{.*?}', '{id}', url[1])}")
    for path in (_SDK / "envd").glob("*/*_connect.py"):
        named = re.findall(r'name="(\w+)",\s+service_name="([\w.]+)"', path.read_text())
        actual |= {f"{service}/{name}" for name, service in named}
    text = pathlib.Path(inspect.getfile(e2b_code_interpreter.AsyncSandbox)).read_text()
    urls = {re.sub(r"{.*?}", "{id}", url) for url in re.findall(r'_jupyter_url}(/[^"]+)"', text)}
    assert urls == {"/execute", "/contexts", "/contexts/{id}", "/contexts/{id}/restart"}
    actual |= {"POST /execute", "GET /contexts", "POST /contexts"}
    actual |= {"DELETE /contexts/{id}", "POST /contexts/{id}/restart"}
    assert set(_endpoints()) == actual


async def test_the_server_knows_what_the_page_says_it_knows(server: E2BLocal, shared: AsyncSandbox) -> None:
    """An endpoint that is not here is unknown; every other one answers something else."""
    traffic = {"E2b-Sandbox-Id": shared.sandbox_id, "X-Access-Token": str(shared._envd_access_token)}
    async with httpx.AsyncClient(base_url=server.api_url) as client:
        for endpoint, here in _endpoints().items():
            headers = {"X-API-KEY": server.api_key}
            method, _, path = endpoint.rpartition(" ")
            if not path.startswith("/"):
                method, path, headers = "POST", f"/{path}", {**traffic, "E2b-Sandbox-Port": "49983"}
            elif path in ("/health", "/files"):
                headers = {**traffic, "E2b-Sandbox-Port": "49983"}
            elif path.startswith(("/execute", "/contexts")):
                headers = {**traffic, "E2b-Sandbox-Port": "49999"}
            # A body nobody can read: nothing is created.
            body = {"content": b"{"} if method == "POST" else {}
            path = path.replace("{id}", "unknown")
            reply = await client.request(method, path, headers=headers, **body)
            unknown = "is not known here" in reply.text or reply.text in ("404 page not found", "Not Found")
            assert unknown is (here == "no"), (endpoint, reply.status_code, reply.text)
