"""One gateway error costs nothing where a request can be repeated; what may have run is sent once."""

import io
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agent.errors import SandboxError, SandboxUnreachableError
from agent.sandbox.live import box
from agent.sandbox.manager import SandboxManager
from agent.sandbox.owners import Owner
from agent.sandbox.provider import Box
from server.sandbox.conftest import MakeManager
from support.e2b_process import E2BLocal

Work = Callable[[Box], Awaitable[Any]]


async def _uploaded(one: Box) -> bytes:
    source = io.BytesIO(b"skipped" + b"x" * 3_000_000)
    source.seek(len(b"skipped"))
    await one.upload("/tmp/uploaded", source)
    return await one.read_file("/tmp/uploaded")


async def _written(one: Box) -> bytes:
    await one.write_files({"/tmp/written": b"w", '/tmp/odd"name': b"o"})
    return await one.read_file("/tmp/written") + await one.read_file('/tmp/odd"name')


FILES: dict[str, tuple[str, Work, Any]] = {
    "read": ("GET .*/files", lambda one: one.read_file("/etc/hostname"), None),
    "digest": ("GET .*/files", lambda one: one.sha256_of("/etc/hostname", max_bytes=999), None),
    "write": ("POST .*/files", _written, b"wo"),
    "upload": ("POST .*/files", _uploaded, b"x" * 3_000_000),
    "listing": ("Filesystem/ListDir", lambda one: one.list_files("/etc"), None),
}


async def _sent_again(
    manager: SandboxManager, owner: Owner, sandboxes: E2BLocal, name: str, fault: str, **more: Any
) -> None:
    """Do the work of a name while the first request for it fails; one hiccup costs nothing of it."""
    match, work, expected = FILES[name]
    acquired = await manager.acquire(owner, "")
    sandboxes.inject(fault, match, **more)
    found = await work(box(acquired.handle))
    assert found if expected is None else found == expected
    assert [fault["hits"] for fault in sandboxes.faults()] == [1]
    await manager.release(owner, acquired.sandbox_id)


@pytest.mark.parametrize("status", [502, 503, 504])
@pytest.mark.parametrize("name", list(FILES))
async def test_file_request_is_sent_again_after_a_gateway_error(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, name: str, status: int
) -> None:
    """One hiccup: the work is done as if there had been none, and its whole content arrives."""
    await _sent_again(make_manager(), owner, sandboxes, name, "status", status=status)


@pytest.mark.parametrize("kind", ["drop", "lost", "cut"])
@pytest.mark.parametrize("name", list(FILES))
async def test_file_request_is_sent_again_after_a_lost_connection(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, name: str, kind: str
) -> None:
    """Also where it was served and the answer lost: files are read and written with the same result."""
    await _sent_again(make_manager(), owner, sandboxes, name, kind)


async def test_file_request_that_is_never_answered_ends_in_a_clear_error(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """The tries have an end: one more than there are pauses."""
    manager = make_manager()
    acquired = await manager.acquire(owner, "")
    sandboxes.inject("status", "GET .*/files", status=503, times=1_000)
    with pytest.raises(SandboxUnreachableError, match="the sandbox service is busy"):
        await box(acquired.handle).read_file("/etc/hostname")
    assert [fault["hits"] for fault in sandboxes.faults()] == [4]
    await manager.release(owner, acquired.sandbox_id)


async def test_lease_renewal_is_sent_again(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal
) -> None:
    """A command whose lease has to be lengthened first is not lost to one gateway error."""
    manager = make_manager(lease_s=30)
    acquired = await manager.acquire(owner, "")
    sandboxes.inject("status", "POST .*/connect", status=503)
    assert (await box(acquired.handle).run_command("echo hi", timeout_s=60)).stdout == "hi\n"
    await manager.release(owner, acquired.sandbox_id)


@pytest.mark.parametrize("status", [502, 503])
async def test_command_runs_once_and_a_cell_is_sent_once(
    make_manager: MakeManager, owner: Owner, sandboxes: E2BLocal, status: int
) -> None:
    """A cell whose request failed may have run: it is reported. A command's start takes effect once."""
    manager = make_manager()
    acquired = await manager.acquire(owner, "")
    one = box(acquired.handle)
    sandboxes.inject("status", "/execute", status=status)
    with pytest.raises(SandboxError):
        await one.run_code("open('/tmp/cells', 'a').write('x')", timeout_s=30)
    assert [fault["hits"] for fault in sandboxes.faults()] == [1]
    sandboxes.clear_faults()
    sandboxes.inject("lost", "process.Process/Start")
    await one.run_command("echo -n x >> /tmp/commands; sleep 0.2", timeout_s=30)
    assert await one.read_file("/tmp/commands") == b"x"
    with pytest.raises(FileNotFoundError):
        await one.read_file("/tmp/cells")
    await manager.release(owner, acquired.sandbox_id)
