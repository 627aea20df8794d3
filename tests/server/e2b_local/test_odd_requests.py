"""Requests that no SDK sends: each gets an answer that says so, and leaves no traceback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from e2b_code_interpreter import AsyncSandbox

from support.e2b_process import E2BLocal


@pytest.fixture(autouse=True)
async def no_traceback(server: E2BLocal) -> AsyncIterator[None]:
    """Whatever a test of this file sends, the server's log shows no error of its own."""
    before = len(server.log())
    yield
    said = server.log()[before:]
    assert "Traceback" not in said
    assert "Exception" not in said


async def _status(server: E2BLocal, line: str, headers: dict[str, str], body: bytes = b"") -> int:
    """Send one request byte by byte as given, and return the status of the answer."""
    shown = {"Host": "localhost", "Connection": "close", "Content-Length": str(len(body))} | headers
    head = "".join(f"{name}: {value}\r\n" for name, value in shown.items())
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.api_url.rpartition(":")[2]))
    writer.write(f"{line} HTTP/1.1\r\n{head}\r\n".encode() + body)
    async with asyncio.timeout(60):
        first = await reader.readline()
        await reader.read()
    writer.close()
    return int(first.split()[1])


def _traffic(sandbox: AsyncSandbox, port: str = "49983") -> dict[str, str]:
    token = str(sandbox._envd_access_token)
    return {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": port, "X-Access-Token": token}


ODD_NUMBERS = ("²", "٤٩٩٨٣", "-1", "+1", "1e3", "0x50", "1_0", "NaN", "é", "9" * 30, "9" * 5000)


@pytest.mark.parametrize("port", [*ODD_NUMBERS, "", "0", "65536", "49983,49983", "\x01"])
async def test_a_port_that_is_none_is_refused(server: E2BLocal, shared: AsyncSandbox, port: str) -> None:
    """As a header and as a part of the host's name it is a 400, with the key or without."""
    key = {"X-API-KEY": server.api_key}
    assert await _status(server, "GET /health", _traffic(shared, port)) == 400
    for headers in ({}, key):
        host = {"Host": f"{port}-{shared.sandbox_id}.localhost"}
        assert await _status(server, "GET /", host | headers) == 400, headers


@pytest.mark.parametrize("host", ["", "[", "[::1", "[::1]:80", "a/b", "x?y", "a@b:1", "x" * 5000])
async def test_any_host_may_be_named_beside_the_headers(
    server: E2BLocal, shared: AsyncSandbox, host: str
) -> None:
    """Where headers say what is meant the Host matters nowhere, least of all as a part of the path."""
    named = {"Host": host}
    assert await _status(server, "GET /health", _traffic(shared) | named) == 204
    assert await _status(server, "POST /process.Process/List", _traffic(shared) | named, b"{}") == 200
    assert await _status(server, "GET /contexts", _traffic(shared, "49999") | named) == 200
    for path in ("/nope", "/_local/nope"):
        assert await _status(server, f"GET {path}", {"X-API-KEY": server.api_key} | named) == 404


@pytest.mark.parametrize("value", ODD_NUMBERS)
async def test_numbers_in_a_query_are_numbers_or_refused(
    server: E2BLocal, shared: AsyncSandbox, value: str
) -> None:
    """A limit and a time are a 400 otherwise, and so is a token of a page that never was."""
    key = {"X-API-KEY": server.api_key}
    quoted = "".join(f"%{byte:02x}" for byte in value.encode())
    metrics = f"/sandboxes/{shared.sandbox_id}/metrics"
    for path in ("/v2/sandboxes?limit=", "/snapshots?limit=", f"{metrics}?start=", f"{metrics}?end="):
        assert await _status(server, f"GET {path}{quoted}", key) == 400, path
    for path in ("/v2/sandboxes?startedAfter=", "/v2/sandboxes?nextToken="):
        assert await _status(server, f"GET {path}{quoted}", key) in (200, 400), path
    signed = f"GET /files?path=x&signature=x&signature_expiration={quoted}"
    assert await _status(server, signed, {}) == 401


@pytest.mark.parametrize("value", ODD_NUMBERS)
async def test_numbers_in_headers_are_numbers_or_refused(
    server: E2BLocal, shared: AsyncSandbox, value: str
) -> None:
    """A length is a 400 otherwise, a deadline an error of the stream, and an interval is the usual one."""
    body = json.dumps({"process": {"cmd": "/bin/true"}, "stdin": False}).encode()
    start = len(body).to_bytes(5, "big") + body
    traffic = _traffic(shared)
    assert await _status(server, "GET /health", traffic | {"Content-Length": value}) in (400, 204)
    for name in ("Connect-Timeout-Ms", "Keepalive-Ping-Interval", "Range", "Keep-Alive"):
        assert await _status(server, "POST /process.Process/Start", traffic | {name: value}, start) == 200
        assert await _status(server, "GET /files?path=/etc/hosts", traffic | {name: value}) == 200


_BODIES = [
    b"[", b"null", b"[]", b'"x"', b"\xff", b"[" * 100_000, b'{"timeout": NaN}', b'{"timeout": "\\ud800"}',
    b'{"timeout": ' + b"9" * 5000 + b"}", b'{"timeout": 1e999}', b'{"timeout": true}', b'{"timeout": []}',
    b'{"timeout": {"a": 1}}',
]  # fmt: skip


@pytest.mark.parametrize("body", _BODIES, ids=lambda body: repr(body[:20]))
async def test_bodies_that_are_none_are_refused(server: E2BLocal, shared: AsyncSandbox, body: bytes) -> None:
    """What is no JSON object, or holds what it cannot, is a 400 wherever a body is read."""
    key, own = {"X-API-KEY": server.api_key}, f"/sandboxes/{shared.sandbox_id}"
    for path in ("/v2/sandboxes", f"/v2{own}/connect", f"{own}/timeout", f"{own}/fork"):
        assert await _status(server, f"POST {path}", key, body) == 400, path
    if b"timeout" not in body:
        for path in (f"{own}/refreshes", f"{own}/snapshots", f"{own}/pause", "/_local/faults"):
            assert await _status(server, f"POST {path}", key, body) == 400, path
        assert await _status(server, "POST /filesystem.Filesystem/Stat", _traffic(shared), body) == 400
        # E2B's interpreter is another program, with another word for it.
        assert await _status(server, "POST /execute", _traffic(shared, "49999"), body) in (400, 422)
    assert await shared.is_running()


_CREATIONS = [
    {"metadata": {"a": "\ud800"}}, {"metadata": []}, {"envVars": {"A=B": "c"}}, {"envVars": {"A": "b\0"}},
    {"envVars": {"": "x"}}, {"autoResume": "yes"}, {"autoPause": "false"}, {"templateID": 1},
    {"network": {"maskRequestHost": "a\r\nb: c"}}, {"network": {"allowPublicTraffic": "no"}},
    {"network": {"maskRequestHost": 1}}, {"network": []}, {"allow_internet_access": 1},
]  # fmt: skip


@pytest.mark.parametrize("options", _CREATIONS, ids=str)
async def test_a_sandbox_is_not_made_of_what_it_cannot_keep(
    server: E2BLocal, options: dict[str, object]
) -> None:
    """Else it could not be listed afterwards, or none of its programs would start."""
    body = json.dumps({"templateID": "base", "timeout": 60} | options).encode()
    alive = {each["sandboxID"] for each in server.alive()}
    assert await _status(server, "POST /v2/sandboxes", {"X-API-KEY": server.api_key}, body) in (400, 404)
    assert {each["sandboxID"] for each in server.alive()} == alive


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("filesystem.Filesystem/Stat", {"path": "a\0b"}),
        ("filesystem.Filesystem/Stat", {"path": ["x"]}),
        ("filesystem.Filesystem/ListDir", {"path": "/tmp", "depth": "²"}),
        ("filesystem.Filesystem/ListDir", {"path": "/tmp", "depth": -1}),
        ("filesystem.Filesystem/MakeDir", {"path": "a/" * 1500}),
        ("filesystem.Filesystem/CreateWatcher", {"path": "/tmp", "recursive": "x"}),
        ("process.Process/SendInput", {"process": {"pid": 1}, "input": {"stdin": "²"}}),
        ("process.Process/SendInput", {"process": {"pid": {}}}),
        ("process.Process/Update", {"process": {"pid": 1}, "pty": {"size": {"cols": 70_000}}}),
    ],
)
async def test_fields_of_another_kind_are_refused(
    server: E2BLocal, shared: AsyncSandbox, call: str, message: dict[str, object]
) -> None:
    """The daemon's calls answer 400 to what they cannot mean."""
    assert await _status(server, f"POST /{call}", _traffic(shared), json.dumps(message).encode()) == 400


async def test_names_of_arguments_are_no_fields(server: E2BLocal, shared: AsyncSandbox) -> None:
    """What a call does not know is left out, whatever it is called inside the server."""
    for name in ("op", "self", "timeout_ms", "metadata"):
        body = json.dumps({"path": "/tmp", name: "remove"}).encode()
        assert await _status(server, "POST /filesystem.Filesystem/Stat", _traffic(shared), body) == 200, name


_FORM = b'--x\r\nContent-Disposition: form-data; name="file"; filename="%b"\r\n\r\nabc\r\n--x--\r\n'


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", _FORM % b"a"),
        ("multipart/form-data; boundary=²", _FORM % b"a"),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\nabc\r\n--x--\r\n"),
        ("multipart/form-data; boundary=x", b"nothing"),
        ("multipart/form-data; boundary=x", _FORM % b"a\0b"),
        ("multipart/form-data; boundary=x", _FORM % (b"a" * 5000)),
        ("multipart/mixed; boundary=x", _FORM % b"a"),
    ],
)
async def test_a_form_that_cannot_be_read_is_refused(
    server: E2BLocal, shared: AsyncSandbox, kind: str, body: bytes
) -> None:
    """Without a boundary, parts, or a name that a file can have it is a 400."""
    assert await _status(server, "POST /files", _traffic(shared) | {"Content-Type": kind}, body) == 400


async def test_names_no_file_can_have_are_refused(server: E2BLocal, shared: AsyncSandbox) -> None:
    """NUL in a path, a named pipe that nobody reads, an attribute whose name is too long."""
    await shared.commands.run("mkfifo pipe")
    traffic = _traffic(shared)
    for line, more in (
        ("GET /files?path=a%00b", {}),
        ("POST /files?path=a%00b", {}),
        ("POST /files?path=pipe", {}),
        ("POST /files?path=x", {f"X-Metadata-{'k' * 300}": "v"}),
    ):
        assert await _status(server, line, traffic | more, b"abc") == 400, line


async def test_a_web_socket_is_a_plain_request(server: E2BLocal, shared: AsyncSandbox) -> None:
    """There are none: the program or the server answers as it would without the wish."""
    wish = {
        "Connection": "Upgrade, close", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    assert await _status(server, "GET /health", _traffic(shared) | wish) == 204


_REPLIES = {
    b"HTTP/1.1 999 x\r\n\r\n": 502,
    b"garbage\r\n\r\n": 502,
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc": 502,
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc": 200,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc": 200,
    b"HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\nhello": 204,
    b"HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n": 304,
    b"HTTP/1.1 101 x\r\nUpgrade: y\r\n\r\nhello": 502,
    b"": 502,
}


async def test_a_program_may_answer_what_it_likes(server: E2BLocal, sandbox: AsyncSandbox) -> None:
    """What is no HTTP is a 502; what breaks off in the middle breaks off."""
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    await sandbox.files.write(
        "answers.py",
        "import socket\ns = socket.create_server(('127.0.0.1', 0))\n"
        "print(s.getsockname()[1], flush=True)\n"
        f"for reply in {list(_REPLIES)!r}:\n    c, _ = s.accept()\n    c.recv(65536)\n"
        "    c.sendall(reply)\n    c.close()\n",
    )
    await sandbox.commands.run(
        "python answers.py", background=True, on_stdout=lambda text: port.set_result(int(text))
    )
    traffic = _traffic(sandbox, str(await port))
    for reply, status in _REPLIES.items():
        assert await _status(server, "GET /", traffic) == status, reply
