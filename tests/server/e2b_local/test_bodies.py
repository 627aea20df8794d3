"""Bodies of requests: each field is what it must be, or the request is refused and nothing is done."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from e2b_code_interpreter import AsyncSandbox

from support.e2b_process import E2BLocal


async def _post(
    server: E2BLocal, path: str, headers: dict[str, str], *, content: bytes, kind: str | None = None
) -> httpx.Response:
    async with httpx.AsyncClient(base_url=server.api_url, timeout=60) as client:
        more = {} if kind is None else {"Content-Type": kind}
        return await client.post(path, content=content, headers=headers | more)


def _port(sandbox: AsyncSandbox, port: int) -> dict[str, str]:
    token = str(sandbox._envd_access_token)
    return {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": str(port), "X-Access-Token": token}


_CELLS = [
    ({}, "missing", ["body", "code"]),
    (None, "missing", ["body"]),
    (["x"], "model_attributes_type", ["body"]),
    ("x", "model_attributes_type", ["body"]),
    (5, "model_attributes_type", ["body"]),
    ({"code": 5}, "string_type", ["body", "code"]),
    ({"code": True}, "string_type", ["body", "code"]),
    ({"code": None}, "string_type", ["body", "code"]),
    ({"code": ["x"]}, "string_type", ["body", "code"]),
    ({"code": {"x": 1}}, "string_type", ["body", "code"]),
    ({"code": "1", "env_vars": {"A": 5}}, "string_type", ["body", "env_vars", "A"]),
    ({"code": "1", "env_vars": {"A": None}}, "string_type", ["body", "env_vars", "A"]),
    ({"code": "1", "env_vars": ["a"]}, "dict_type", ["body", "env_vars"]),
    ({"code": "1", "env_vars": "A=b"}, "dict_type", ["body", "env_vars"]),
    ({"code": "1", "env_vars": {"A=B": "c"}}, "value_error", ["body", "env_vars"]),
    ({"code": "1", "env_vars": {"A": "b\0"}}, "value_error", ["body", "env_vars"]),
    ({"code": "1", "language": 5}, "string_type", ["body", "language"]),
    ({"code": "1", "context_id": ["x"]}, "string_type", ["body", "context_id"]),
]


@pytest.mark.parametrize(("body", "kind", "where"), _CELLS, ids=lambda each: json.dumps(each)[:40])
async def test_a_cell_of_another_shape_is_refused_in_the_words_of_e2b(
    server: E2BLocal, shared: AsyncSandbox, body: object, kind: str, where: list[str]
) -> None:
    """As E2B's FastAPI does, with 422 and what is wrong where; nothing of it runs."""
    answer = await _post(server, "/execute", _port(shared, 49999), content=json.dumps(body).encode())
    assert answer.status_code == 422
    errors = answer.json()["detail"]
    assert [(each["type"], each["loc"]) for each in errors] == [(kind, where)]
    assert all({"msg", "input"} <= each.keys() for each in errors)


async def test_a_cell_whose_body_is_no_json_is_refused(server: E2BLocal, shared: AsyncSandbox) -> None:
    """Nothing, half an object, a number that JSON lacks, another type of content, another encoding."""
    port = _port(shared, 49999)
    for content, kind, status in (
        (b"", "application/json", 422),
        (b'{"code": ', "application/json", 422),
        (b'{"code": "1"}', "text/plain", 422),
        (b"code=1", "application/x-www-form-urlencoded", 422),
        (b'{"code": NaN}', None, 422),
        (b'{"code": "\xff"}', "application/json", 400),
        (b'{"code": "\\ud800"}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
    ):
        answer = await _post(server, "/execute", port, content=content, kind=kind)
        assert (answer.status_code, bool(answer.json()["detail"])) == (status, True), content[:20]


async def test_a_cell_may_leave_out_or_null_all_but_its_code(server: E2BLocal, shared: AsyncSandbox) -> None:
    """What E2B takes is taken: nulls, fields it does not know, a type with a charset, code that is empty."""
    port = _port(shared, 49999)
    for body in (
        {"code": "1"},
        {"code": "", "context_id": None, "language": None, "env_vars": None},
        {"code": "1", "context_id": "", "language": "", "env_vars": {}, "more": 5},
    ):
        answer = await _post(
            server, "/execute", port, content=json.dumps(body).encode(), kind="application/json;charset=utf-8"
        )
        assert answer.status_code == 200, body


@pytest.mark.parametrize(
    "body", [None, ["x"], {"cwd": 5}, {"language": ["python"]}, {"cwd": True}, {"cwd": "a\0b"}], ids=str
)
async def test_a_context_of_another_shape_is_not_made(
    server: E2BLocal, shared: AsyncSandbox, body: object
) -> None:
    """It is refused like a cell, and no context more is there."""
    port = _port(shared, 49999)
    before = await shared.list_code_contexts()
    answer = await _post(server, "/contexts", port, content=json.dumps(body).encode())
    assert (answer.status_code, bool(answer.json()["detail"])) == (422, True)
    assert len(await shared.list_code_contexts()) == len(before)


_START: dict[str, Any] = {"cmd": "/bin/sh", "args": ["-c", "touch ~/ran"]}


@pytest.mark.parametrize(
    "message",
    [
        {"process": ["x"]}, {"process": "x"}, {"process": _START | {"envs": {"A": 5}}},
        {"process": _START | {"envs": ["a"]}}, {"process": _START | {"envs": {"A": None}}},
        {"process": _START | {"args": "x"}}, {"process": _START | {"args": [5]}},
        {"process": _START | {"cmd": 5}}, {"process": _START | {"cwd": ["x"]}},
        {"process": _START, "stdin": "no"}, {"process": _START, "tag": 5}, {"process": _START, "pty": "x"},
    ],
    ids=str,
)  # fmt: skip
async def test_a_command_of_another_shape_does_not_run(
    server: E2BLocal, shared: AsyncSandbox, message: dict[str, object]
) -> None:
    """The daemon's stream ends with the error, and no process was started."""
    payload = json.dumps(message).encode()
    content = b"\0" + len(payload).to_bytes(4, "big") + payload
    answer = await _post(server, "/process.Process/Start", _port(shared, 49983), content=content)
    assert json.loads(answer.content[5:])["error"]["code"] == "invalid_argument"
    assert not await shared.files.exists("ran")


async def test_a_call_of_the_daemon_without_a_message_is_refused(
    server: E2BLocal, shared: AsyncSandbox
) -> None:
    """An empty body is no object, so nothing is taken for the home folder."""
    for call in ("filesystem.Filesystem/Remove", "filesystem.Filesystem/ListDir", "process.Process/List"):
        answer = await _post(server, f"/{call}", _port(shared, 49983), content=b"")
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument"), call


_CONTROL: list[tuple[str, object]] = [
    ("/v2/sandboxes", {}), ("/v2/sandboxes", {"templateID": None}),
    ("/v2/sandboxes", {"templateID": "base", "timeout": None}),
    ("/v2/sandboxes", {"templateID": "base", "timeout": "60"}),
    ("/v2/sandboxes", {"templateID": "base", "metadata": None}),
    ("/v2/sandboxes", {"templateID": "base", "metadata": {"a": 5}}),
    ("/v2/sandboxes", {"templateID": "base", "envVars": {"A": 5}}),
    ("/v2/sandboxes", {"templateID": "base", "envVars": ["a"]}),
    ("/v2/sandboxes", {"templateID": "base", "secure": "yes"}),
    ("/v2/sandboxes", {"templateID": "base", "autoResume": {"enabled": 1}}),
    ("/v2/sandboxes", {"templateID": "base", "network": None}),
    ("/v2/sandboxes", {"templateID": "base", "network": {"denyOut": False}}),
    ("/v2/sandboxes", {"templateID": "base", "network": {"allowOut": ""}}),
    ("/v2/sandboxes", {"templateID": "base", "network": {"allowPublicTraffic": None}}),
    ("/v2/sandboxes/ID/connect", {"timeout": None}), ("/v2/sandboxes/ID/connect", {"timeout": "5"}),
    ("/sandboxes/ID/timeout", {}), ("/sandboxes/ID/timeout", {"timeout": None}),
    ("/sandboxes/ID/refreshes", {"duration": "x"}), ("/sandboxes/ID/refreshes", {"duration": None}),
    ("/sandboxes/ID/pause", {"memory": "false"}), ("/sandboxes/ID/pause", {"memory": None}),
    ("/sandboxes/ID/pause", {"requireHealthyGuest": 1}),
    ("/sandboxes/ID/fork", {"count": None}), ("/sandboxes/ID/fork", {"timeout": None}),
    ("/sandboxes/ID/snapshots", {"name": 5}), ("/sandboxes/ID/snapshots", {"name": None}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body"), _CONTROL, ids=str)
async def test_the_control_plane_refuses_fields_of_another_kind(
    server: E2BLocal, shared: AsyncSandbox, path: str, body: object
) -> None:
    """Null too, where E2B's schema has none: a 400 that names the field, and nothing was made or changed."""
    before = server.alive()
    answer = await _post(
        server,
        path.replace("ID", shared.sandbox_id),
        {"X-API-KEY": server.api_key},
        content=json.dumps(body).encode(),
        kind="application/json",
    )
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] == 400
    assert server.alive() == before


async def test_rules_of_another_kind_change_nothing(server: E2BLocal, shared: AsyncSandbox) -> None:
    """An update of the network that says null, or no list, is refused."""
    async with httpx.AsyncClient(base_url=server.api_url, headers={"X-API-KEY": server.api_key}) as client:
        for body in ({"allow_internet_access": None}, {"allowOut": False}, {"denyOut": 0}, {"allowOut": [5]}):
            answer = await client.put(f"/sandboxes/{shared.sandbox_id}/network", json=body)
            assert answer.status_code == 400, body


async def test_a_body_has_a_largest_size(server: E2BLocal, shared: AsyncSandbox) -> None:
    """What has no end is not read to its end, wherever a body is read whole."""
    key = {"X-API-KEY": server.api_key}

    async def endless() -> Any:
        for _ in range(2000):
            yield b" " * 65536

    async with httpx.AsyncClient(base_url=server.api_url, timeout=60) as client:
        for path, headers in (
            ("/v2/sandboxes", key),
            ("/_local/faults", key),
            ("/execute", _port(shared, 49999)),
            ("/filesystem.Filesystem/Stat", _port(shared, 49983)),
            ("/process.Process/Start", _port(shared, 49983)),
        ):
            answer = await client.post(path, headers=headers, content=endless())
            assert answer.status_code == 413, path
