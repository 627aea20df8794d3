"""Ports of a sandbox from outside, and the internet from inside."""

from __future__ import annotations

import asyncio
import os
import pathlib
import shutil
import socket
import urllib.request
from collections.abc import AsyncIterator

import httpx
import pytest
from e2b import SandboxException
from e2b_code_interpreter import AsyncSandbox, Sandbox

from support.e2b_process import E2BLocal, MakeSandbox, start_e2b_local

needs_pasta = pytest.mark.skipif(
    shutil.which("pasta") is None or not os.access("/dev/net/tun", os.R_OK | os.W_OK),
    reason="pasta (passt) is not installed or may not use /dev/net/tun",
)


async def _serving(sandbox: AsyncSandbox) -> int:
    """Start a web server in the sandbox and return its port: a free one, since it may be the host's."""
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    program = (
        "import http.server, sys\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_POST(self):\n"
        "        body = self.rfile.read(int(self.headers['content-length']))\n"
        "        self.send_response(201); self.send_header('x-path', self.path)\n"
        "        self.send_header('x-host', self.headers['host'])\n"
        "        self.end_headers(); self.wfile.write(body[::-1])\n"
        "s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H); print(s.server_port, flush=True)\n"
        "s.serve_forever()\n"
    )
    await sandbox.files.write("server.py", program)
    await sandbox.commands.run(
        "python server.py", background=True, on_stdout=lambda text: port.set_result(int(text))
    )
    async with asyncio.timeout(60):
        return await port


async def test_a_port_is_reached_by_host_name(server: E2BLocal, shared: AsyncSandbox) -> None:
    """A request for the sandbox's host name goes to the program inside, body and path included."""
    port = await _serving(shared)
    host = shared.get_host(port)
    assert host == f"{port}-{shared.sandbox_id}.localhost:{server.api_url.rpartition(':')[2]}"
    async with httpx.AsyncClient() as client:
        reply = await client.post(
            f"{server.api_url}/some/path?q=1", headers={"Host": host}, content=b"abc" * 100_000
        )
        assert (reply.status_code, reply.headers["x-path"]) == (201, "/some/path?q=1")
        assert reply.content == b"cba" * 100_000
        closed = await client.get(server.api_url, headers={"Host": shared.get_host(1)})
    assert closed.status_code == 502
    assert "port is not open" in closed.json()["message"]


async def test_a_private_sandbox_wants_its_traffic_token(make_sandbox: MakeSandbox, server: E2BLocal) -> None:
    """Without public traffic only those with the token reach a port; the SDK sends it by itself."""
    sandbox = await make_sandbox(network={"allow_public_traffic": False})
    headers = {"Host": sandbox.get_host(await _serving(sandbox))}
    async with httpx.AsyncClient() as client:
        assert (await client.post(server.api_url, headers=headers, content=b"x")).status_code == 403
        headers["E2B-Traffic-Access-Token"] = str(sandbox.traffic_access_token)
        assert (await client.post(server.api_url, headers=headers, content=b"x")).status_code == 201
    assert (await sandbox.run_code("1 + 1")).text == "2"


async def test_the_host_name_a_program_sees_can_be_another(
    make_sandbox: MakeSandbox, server: E2BLocal
) -> None:
    """As mask_request_host says, with the port put in; get_info tells the options."""
    network = {"mask_request_host": "my.example:${PORT}"}
    sandbox = await make_sandbox(network=network)
    port = await _serving(sandbox)
    async with httpx.AsyncClient() as client:
        reply = await client.post(server.api_url, headers={"Host": sandbox.get_host(port)}, content=b"x")
    assert reply.headers["x-host"] == f"my.example:{port}"
    assert (await sandbox.get_info()).network == network


async def test_signed_addresses_find_their_sandbox(sandbox: AsyncSandbox, make_sandbox: MakeSandbox) -> None:
    """A signed address works without headers; an expired or a foreign one does not."""
    other = await make_sandbox()
    await sandbox.files.write("f", "mine")
    await other.files.write("f", "other's")
    assert await asyncio.to_thread(_get, sandbox.download_url("f")) == (200, "mine")
    assert await asyncio.to_thread(_get, other.download_url("f", use_signature_expiration=60)) == (
        200,
        "other's",
    )
    status, body = await asyncio.to_thread(_get, sandbox.download_url("f", use_signature_expiration=-60))
    assert status == 401
    assert "signature is already expired" in body
    status, _ = await asyncio.to_thread(_get, sandbox.download_url("f").replace("path=f", "path=g"))
    assert status == 401


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as exc:
        return exc.code, exc.read().decode()


@pytest.fixture
async def open_port() -> AsyncIterator[int]:
    """A server of the host that listens on every address."""

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"reached the host")
        writer.close()

    listening = await asyncio.start_server(answer, "0.0.0.0", 0)
    yield listening.sockets[0].getsockname()[1]
    listening.close()


@needs_pasta
@pytest.mark.usefixtures("isolated")
async def test_the_internet_is_switched(server: E2BLocal, make_sandbox: MakeSandbox, open_port: int) -> None:
    """Allowed, it has a way out that leads to nothing on this host; update_network takes it away."""
    gateway = _default_gateway()
    if gateway is None:
        pytest.skip("this machine has no default route that a sandbox could share")
    sandbox = await make_sandbox(allow_internet_access=True)
    assert await _interfaces(sandbox) > 1
    control_port = int(server.api_url.rpartition(":")[2])
    tried = [("127.0.0.1", open_port), ("127.0.0.1", control_port), ("localhost", control_port)]
    tried += [(gateway, open_port), (gateway, control_port)]
    await sandbox.files.write(
        "reach.py",
        "import concurrent.futures, socket\ndef reach(where):\n"
        "    try:\n        return socket.create_connection(where, 2).recv(99)\n"
        "    except OSError:\n        return 'not reached'\n"
        "with concurrent.futures.ThreadPoolExecutor() as pool:\n"
        f"    print(*pool.map(reach, {tried}), sep=',')\n",
    )
    shown = (await sandbox.commands.run("python reach.py")).stdout
    assert shown == ",".join(["not reached"] * len(tried)) + "\n"
    await sandbox.update_network({"allow_internet_access": False})
    assert await _interfaces(sandbox) == 1
    await sandbox.update_network({"allow_internet_access": True})
    assert await _interfaces(sandbox) > 1


@pytest.mark.usefixtures("isolated")
def test_without_pasta_the_internet_is_refused_with_a_hint(tmp_path: pathlib.Path) -> None:
    """A create that needs it says what to install."""
    for name in ("bwrap", "setpriv", "sh"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    running = start_e2b_local("--pool", "0", env={"PATH": str(tmp_path)})
    try:
        with pytest.raises(SandboxException, match="apt-get install passt"):
            Sandbox.create(allow_internet_access=True, **running.options)
    finally:
        assert running.stop() == 0


async def _interfaces(sandbox: AsyncSandbox) -> int:
    return int((await sandbox.commands.run("tail -n +3 /proc/net/dev | wc -l")).stdout)


def _default_gateway() -> str | None:
    table = pathlib.Path("/proc/net/route")
    for line in table.read_text().splitlines()[1:] if table.exists() else ():
        _, destination, gateway, *_ = line.split()
        if destination == "00000000":
            return socket.inet_ntoa(bytes.fromhex(gateway)[::-1])
    return None
