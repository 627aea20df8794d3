"""The control plane as the SDK uses it."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from e2b import (
    AuthenticationException,
    NotFoundException,
    SandboxException,
    SandboxNotFoundException,
    SandboxQuery,
    SandboxState,
)
from e2b_code_interpreter import AsyncSandbox, Sandbox

from support.e2b_process import E2BLocal, MakeSandbox


async def test_create_reports_what_it_was_given(make_sandbox: MakeSandbox) -> None:
    """get_info names template, metadata, lifecycle and an end that is the timeout after the start."""
    sandbox = await make_sandbox(
        metadata={"app": "a b&c=ü", "x": "1"},
        timeout=120,
        lifecycle={"on_timeout": "pause", "auto_resume": True},
    )
    info = await sandbox.get_info()
    assert info.sandbox_id == sandbox.sandbox_id
    assert info.template_id == "code-interpreter-v1"
    assert info.metadata == {"app": "a b&c=ü", "x": "1"}
    assert info.state == SandboxState.RUNNING
    assert round((info.end_at - info.started_at).total_seconds()) == 120
    assert info.lifecycle == {"on_timeout": "pause", "auto_resume": True}


async def test_create_without_timeout_lives_five_minutes(sandbox: AsyncSandbox) -> None:
    """The SDK leaves the timeout out; the server's default is 300 s."""
    info = await sandbox.get_info()
    assert round((info.end_at - info.started_at).total_seconds()) == 300


@pytest.mark.parametrize("timeout", [0, -1, 24 * 3600 + 1])
async def test_create_refuses_a_timeout_out_of_range(server: E2BLocal, timeout: int) -> None:
    """A timeout that is not positive or is over a day is a 400."""
    with pytest.raises(SandboxException) as caught:
        await AsyncSandbox.create(timeout=timeout, **server.options)
    assert caught.value.status_code == 400


async def test_create_refuses_an_unknown_template(server: E2BLocal) -> None:
    """An unknown template is a plain SandboxException with status 404."""
    with pytest.raises(SandboxException) as caught:
        await AsyncSandbox.create(template="no-such-template", **server.options)
    assert caught.value.status_code == 404


async def test_a_wrong_key_is_refused(server: E2BLocal) -> None:
    """Any other key than the server's is a 401."""
    with pytest.raises(AuthenticationException):
        await AsyncSandbox.create(**(server.options | {"api_key": "e2b_" + "0" * 40}))


async def test_list_filters_and_orders(server: E2BLocal, make_sandbox: MakeSandbox) -> None:
    """By all the metadata asked for, one of the states, template and time; the newest first unless asked."""
    mark = str(uuid.uuid4())
    first = await make_sandbox(metadata={"mark": mark, "text": "a b=c&d/ü"})
    second = await make_sandbox(metadata={"mark": mark})
    await second.pause()

    async def ids(**query: object) -> list[str]:
        metadata = {"mark": mark, **query.pop("metadata", {})}  # type: ignore[dict-item]
        pages = AsyncSandbox.list(query=SandboxQuery(metadata=metadata, **query), **_api(server))
        return [each.sandbox_id for each in await pages.next_items()]

    assert await ids() == [second.sandbox_id, first.sandbox_id]
    assert await ids(metadata={"text": "a b=c&d/ü"}) == [first.sandbox_id]
    assert await ids(metadata={"text": "other"}) == []
    assert await ids(state=[SandboxState.PAUSED]) == [second.sandbox_id]
    assert await ids(state=[SandboxState.RUNNING]) == [first.sandbox_id]
    assert await ids(template="code-interpreter-v1") == [second.sandbox_id, first.sandbox_id]
    assert await ids(template="base") == []
    after = (await second.get_info()).started_at
    assert await ids(started_after=after) == [second.sandbox_id]
    oldest = AsyncSandbox.list(query=SandboxQuery(metadata={"mark": mark}), order="asc", **_api(server))
    assert [each.sandbox_id for each in await oldest.next_items()] == [first.sandbox_id, second.sandbox_id]


async def test_list_comes_in_pages(server: E2BLocal, make_sandbox: MakeSandbox) -> None:
    """A limit gives pages, each sandbox once."""
    mark = str(uuid.uuid4())
    made = [(await make_sandbox(metadata={"mark": mark})).sandbox_id for _ in range(3)]
    pages = AsyncSandbox.list(query=SandboxQuery(metadata={"mark": mark}), limit=2, **_api(server))
    found = await pages.next_items()
    assert len(found) == 2
    assert pages.has_next
    found += await pages.next_items()
    assert not pages.has_next
    assert [each.sandbox_id for each in found] == made[::-1]


async def test_kill_ends_a_sandbox_once(server: E2BLocal, make_sandbox: MakeSandbox) -> None:
    """Killing answers whether there was something to kill; afterwards nothing finds the sandbox."""
    sandbox = await make_sandbox()
    assert await sandbox.kill() is True
    assert await sandbox.kill() is False
    assert await sandbox.is_running() is False
    with pytest.raises(SandboxNotFoundException):
        await sandbox.get_info()
    with pytest.raises(SandboxNotFoundException):
        await AsyncSandbox.connect(sandbox.sandbox_id, **server.options)
    with pytest.raises(NotFoundException):
        await sandbox.set_timeout(60)


async def test_an_idempotency_key_creates_once(server: E2BLocal, make_sandbox: MakeSandbox) -> None:
    """The same key and body give the same sandbox, also at the same time; another body is a 422."""
    key = str(uuid.uuid4())
    first, second = await asyncio.gather(*(make_sandbox(idempotency_key=key) for _ in range(2)))
    assert first.sandbox_id == second.sandbox_id
    with pytest.raises(SandboxException) as caught:
        await make_sandbox(idempotency_key=key, metadata={"other": "body"})
    assert caught.value.status_code == 422
    await first.kill()
    assert (await make_sandbox(idempotency_key=key)).sandbox_id != first.sandbox_id


def test_the_sync_sdk_works_too(server: E2BLocal) -> None:
    """Create, command, file, code and kill through the synchronous SDK."""
    with Sandbox.create(envs={"GREETING": "hello"}, **server.options) as sandbox:
        assert sandbox.commands.run("echo $GREETING").stdout == "hello\n"
        sandbox.files.write("note.txt", "text")
        assert sandbox.files.read("/home/user/note.txt") == "text"
        assert sandbox.run_code("open('note.txt').read() + '!'").text == "text!"


@pytest.mark.parametrize(
    "option",
    [
        {"mcp": {"server": {}}},
        {"iam": {"tokens": {"aws": {"audience": "x", "token_type": "jwt"}}}},
        {"volume_mounts": {"/mnt/data": "volume"}},
        {"network": {"https_ports": [8443]}},
        {"network": {"rules": {"example.com": [{"transform": {"headers": {"a": "b"}}}]}}},
        {"network": {"egress_proxy": {"address": "proxy:1080"}}},
    ],
    ids=lambda option: "-".join(str(key) for key in option),
)
async def test_options_that_are_not_here_are_refused(server: E2BLocal, option: dict[str, object]) -> None:
    """To ignore one would start another sandbox than the one that was asked for."""
    with pytest.raises(SandboxException, match="e2b-local has no") as caught:
        await AsyncSandbox.create(**option, **server.options)
    assert caught.value.status_code == 400


def _api(server: E2BLocal) -> dict[str, str]:
    return {"api_url": server.api_url, "api_key": server.api_key}
