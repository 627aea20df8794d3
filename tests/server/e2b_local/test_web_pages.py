"""What a web page could send to a sandbox of this machine: by a name of its own, or across origins."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from e2b_code_interpreter import AsyncSandbox, Sandbox

from support.e2b_process import E2BLocal, start_e2b_local


async def _ask(server: E2BLocal, method: str, path: str, headers: dict[str, str], **more: Any) -> int:
    async with httpx.AsyncClient(base_url=server.api_url, timeout=60) as client:
        return (await client.request(method, path, headers=headers, **more)).status_code


def _by_name(server: E2BLocal, sandbox: AsyncSandbox, port: int, domain: str = "localhost") -> dict[str, str]:
    return {"Host": f"{port}-{sandbox.sandbox_id}.{domain}:{server.api_url.rpartition(':')[2]}"}


def _by_headers(sandbox: AsyncSandbox, port: int) -> dict[str, str]:
    return {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": str(port)}


@pytest.mark.parametrize(
    "domain", ["attacker.example", "localhost.attacker.example", "notlocalhost", "127.0.0.1"]
)
@pytest.mark.parametrize("port", [8000, 49983, 49999])
async def test_a_name_of_another_domain_leads_to_no_sandbox(
    server: E2BLocal, shared: AsyncSandbox, domain: str, port: int
) -> None:
    """A name that leads to this machine by the will of a stranger is refused, with the headers too."""
    assert await _ask(server, "GET", "/health", _by_name(server, shared, port, domain)) == 403
    if "example" in domain:
        headers = _by_headers(shared, port) | {"Host": domain}
        assert await _ask(server, "GET", "/health", headers) == 403


@pytest.mark.parametrize(
    "name", ["localhost", "127.0.0.1", "[::1]", "e2b-local", "10.0.0.5", "x.localhost", ""]
)
async def test_a_name_of_this_machine_or_network_is_served(
    server: E2BLocal, shared: AsyncSandbox, name: str
) -> None:
    """What programs call this server, with and without a port, beside the headers that the SDK sends."""
    for host in (name, f"{name}:80"):
        assert await _ask(server, "GET", "/health", _by_headers(shared, 49983) | {"Host": host}) == 204
    assert await _ask(server, "GET", "/health", _by_name(server, shared, 49983)) == 204
    assert await _ask(server, "GET", "/health", _by_name(server, shared, 49983, "LOCALHOST")) == 204


_FOREIGN = ["http://attacker.example", "https://localhost.attacker.example", "null", "http://8000-iother.localhost:1",
            "http://10.0.0.5", "http://[", "file://", "http://localhost@attacker.example"]  # fmt: skip


@pytest.mark.parametrize("origin", _FOREIGN)
async def test_a_page_of_another_origin_runs_nothing(
    server: E2BLocal, shared: AsyncSandbox, origin: str
) -> None:
    """Neither a cell nor a call of the daemon, by name nor by headers, with the token or without."""
    body = json.dumps({"code": "open('/tmp/page', 'w')"})
    for address in (_by_name(server, shared, 49999), _by_headers(shared, 49999)):
        assert await _ask(server, "POST", "/execute", address | {"Origin": origin}, content=body) == 403
        assert await _ask(server, "GET", "/contexts", address | {"Sec-Fetch-Site": "cross-site"}) == 403
    token = {"X-Access-Token": str(shared._envd_access_token), "Origin": origin}
    daemon = _by_headers(shared, 49983) | token
    assert await _ask(server, "POST", "/process.Process/List", daemon, content=b"{}") == 403
    assert not await shared.files.exists("/tmp/page")


async def test_a_simple_request_of_a_page_runs_nothing(server: E2BLocal, shared: AsyncSandbox) -> None:
    """A form or a text is no JSON, whoever sends it."""
    address = _by_name(server, shared, 49999)
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        headers = address | {"Content-Type": kind}
        assert await _ask(server, "POST", "/execute", headers, content=b'{"code": "1"}') == 422


async def test_a_page_of_this_machine_may_ask(server: E2BLocal, shared: AsyncSandbox) -> None:
    """So may one of the same sandbox, and whoever types an address."""
    own = f"http://8000-{shared.sandbox_id}.localhost:1"
    for more in ({"Origin": "http://localhost:3000"}, {"Origin": "http://127.0.0.1"}, {"Origin": own}, {
        "Sec-Fetch-Site": "none"}):  # fmt: skip
        assert await _ask(server, "GET", "/contexts", _by_name(server, shared, 49999) | more) == 200


async def test_a_page_cannot_wake_a_sandbox(server: E2BLocal, make_sandbox: Any) -> None:
    """A paused one stays asleep, though requests by its address may wake it."""
    sandbox = await make_sandbox(lifecycle={"on_timeout": "pause", "auto_resume": True})
    await sandbox.pause()
    headers = _by_name(server, sandbox, 49999) | {"Origin": "http://attacker.example"}
    assert await _ask(server, "POST", "/execute", headers, content=b'{"code": "1"}') == 403
    state = {each["sandboxID"]: each["state"] for each in server.alive()}
    assert state[sandbox.sandbox_id] == "paused"


def test_a_domain_of_ones_own_is_served() -> None:
    """`--domain` names it to the SDK, and requests below it lead to their sandbox; below localhost, too."""
    server = start_e2b_local("--pool", "0", "--domain", "Sandboxes.example")
    try:
        with Sandbox.create(**server.options) as sandbox:
            port = server.api_url.rpartition(":")[2]
            assert sandbox.get_host(49983) == f"49983-{sandbox.sandbox_id}.sandboxes.example:{port}"
            for domain in ("sandboxes.example", "localhost"):
                host = {"Host": f"49983-{sandbox.sandbox_id}.{domain}"}
                assert httpx.get(f"{server.api_url}/health", headers=host).status_code == 204
            host = {"Host": f"49983-{sandbox.sandbox_id}.example"}
            assert httpx.get(f"{server.api_url}/health", headers=host).status_code == 403
    finally:
        assert server.stop() == 0
