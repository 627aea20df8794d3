"""Work inside one E2B sandbox."""

import asyncio
import functools
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Concatenate, ParamSpec, TypeVar

from e2b.sandbox.filesystem.filesystem import EntryInfo, FileType, WriteEntry
from e2b_code_interpreter.code_interpreter_async import AsyncSandbox

from agent.bounded import TooLargeError, collected
from agent.errors import SandboxAnswerError, SandboxError, SandboxGoneError
from agent.sandbox.e2b import background
from agent.sandbox.e2b.answers import FILES as FILE_ANSWERS
from agent.sandbox.e2b.bounds import BoundedSandbox
from agent.sandbox.e2b.calls import call
from agent.sandbox.e2b.cells import Cell, Kernel
from agent.sandbox.e2b.commands import Command
from agent.sandbox.e2b.errors import translated, translated_files
from agent.sandbox.e2b.inside import FILES
from agent.sandbox.lease import Lease
from agent.sandbox.policy import SandboxPolicy
from agent.sandbox.provider import (
    READ_BYTES,
    SHOWN_BYTES,
    BackgroundResult,
    CodeResult,
    CommandResult,
    FileEntry,
    OutputHandler,
)
from agent.sandbox.retries import Retries
from agent.sandbox.turns import Turns

FILES_LIMIT_S = 60
"""Of one operation on files: a search through a large folder takes its time."""


_WRITTEN_AT_ONCE = 250
"""Files in one request: its answer tells of each, and is bounded."""
_UPLOAD_LIMIT_S = 300
_RENEWALS = 5
"""How often in the length of a lease it is looked at while work goes on."""

_ODD = re.compile(r'["\\\x00-\x1f\x7f]')
"""Characters that a multipart form cannot carry in a file's name."""


class OwnedSandbox(AsyncSandbox):
    """The SDK's sandbox, made or found by this package; tools written for the SDK use it as it is."""

    lease: Lease
    policy: SandboxPolicy | None = None
    gone: bool = False
    environment: Callable[[], Awaitable[Mapping[str, str]]] | None = None
    """Asked before each command and cell for the variables that it is given; None means none."""
    retries: Retries = Retries()
    """How patiently requests that may be repeated are sent again."""


T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


def _noticing_death(
    work: Callable[Concatenate["E2BBox", P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate["E2BBox", P], Coroutine[Any, Any, R]]:
    """Leave a mark on the handle when the sandbox turns out to be gone: whoever holds it looks there."""

    async def working(self: "E2BBox", /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await work(self, *args, **kwargs)
        except SandboxGoneError:
            if isinstance(self._sandbox, OwnedSandbox):
                self._sandbox.gone = True
            raise

    functools.update_wrapper(working, work)
    return working


class E2BBox:
    """Implements `agent.sandbox.provider.Box` on the SDK's handle.

    A sandbox of our own has its lease renewed before work that would outlast it. One that a caller brought
    keeps the lifetime its owner gave it.
    """

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox
        self._lease = sandbox.lease if isinstance(sandbox, OwnedSandbox) else None
        self._kept = _kept_beside(sandbox)

    @property
    def sandbox_id(self) -> str:
        """The sandbox's id."""
        return self._sandbox.sandbox_id

    @property
    def policy(self) -> SandboxPolicy | None:
        """The policy the sandbox lives by; None for one that a caller brought."""
        return self._sandbox.policy if isinstance(self._sandbox, OwnedSandbox) else None

    @property
    def turns(self) -> Turns:
        """The turns of calls in this sandbox, as far as they go through this handle."""
        return self._kept.turns

    async def _cover(self, work_s: float) -> None:
        """See that the lease outlasts work of `work_s` seconds."""
        lifetime = self._lease.needed_for(work_s) if self._lease else None
        if self._lease and lifetime:

            async def renew() -> None:
                with translated():
                    # connect, not set_timeout: it never shortens what another process may have asked for.
                    await self._sandbox.connect(timeout=lifetime)

            await self._again(renew)
            self._lease.renewed(lifetime)

    @asynccontextmanager
    async def _kept_alive(self) -> AsyncIterator[None]:
        """Renew the lease for as long as work of our own takes.

        Never beyond its own length: should this process die meanwhile, the sandbox pauses within that.
        """
        await self._cover(0)
        renewing = asyncio.create_task(self._renew()) if self._lease else None
        try:
            yield
        finally:
            if renewing:
                renewing.cancel()
                await asyncio.gather(renewing, return_exceptions=True)

    async def _renew(self) -> None:
        assert self._lease is not None
        while True:  # ended with the work, which has a limit
            await asyncio.sleep(self._lease.length_s / _RENEWALS)
            # The work itself says what is wrong with the sandbox.
            with suppress(SandboxError):
                await self._cover(0)

    async def _again(self, request: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the answer to a request that may be repeated, sending it again while there is none."""
        return await self._kept.bounded.retries.answered(request)

    @_noticing_death
    async def run_command(
        self,
        command: str,
        *,
        timeout_s: float,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        shown_bytes: int = SHOWN_BYTES,
        spooled: bool = True,
        on_output: OutputHandler | None = None,
    ) -> CommandResult:
        """Run a command line; its limit is enforced by the sandbox, which kills it."""
        variables = {**await self._environment(), **(envs or {})}
        running = Command(
            self._kept.bounded,
            command,
            timeout_s=timeout_s,
            cwd=cwd,
            variables=variables,
            shown_bytes=shown_bytes,
            spooled=spooled,
            on_output=on_output,
        )
        if spooled:
            await self._cover(timeout_s)
            return await running.run()
        async with self._kept_alive():
            return await running.run()

    async def _environment(self) -> Mapping[str, str]:
        """Return what the deployment gives every command and cell; asked anew, since values change."""
        handle = self._sandbox
        wanted = handle.environment if isinstance(handle, OwnedSandbox) else None
        return await wanted() if wanted else {}

    @_noticing_death
    async def start_command(
        self, command: str, *, cwd: str | None = None, envs: Mapping[str, str] | None = None
    ) -> str:
        """Start a command in the background."""
        await self._cover(0)
        return await background.start(
            self._kept.bounded, command, cwd, {**await self._environment(), **(envs or {})}
        )

    @_noticing_death
    async def poll_command(
        self, command_id: str, *, wait_s: float = 0, shown_bytes: int = SHOWN_BYTES
    ) -> BackgroundResult:
        """Return how a command in the background is doing."""
        async with self._kept_alive():
            return await background.poll(self._kept.bounded, command_id, wait_s, shown_bytes)

    @_noticing_death
    async def stop_command(self, command_id: str, *, shown_bytes: int = SHOWN_BYTES) -> BackgroundResult:
        """End a command in the background."""
        await self._cover(0)
        return await background.stop(self._kept.bounded, command_id, shown_bytes)

    @_noticing_death
    async def work_on_files(self, /, operation: str, **request: Any) -> dict[str, Any]:
        """Do an operation on files in the sandbox, in one request."""
        shape = FILE_ANSWERS[operation]
        async with self._kept_alive():
            answer: dict[str, Any] = await call(
                self._kept.bounded, FILES, operation, timeout_s=FILES_LIMIT_S, shape=shape, **request
            )
        return answer

    @_noticing_death
    async def run_code(
        self,
        code: str,
        *,
        timeout_s: float,
        envs: Mapping[str, str] | None = None,
        shown_bytes: int = SHOWN_BYTES,
        on_output: OutputHandler | None = None,
    ) -> CodeResult:
        """Run Python in the sandbox's default kernel; at the limit, or when cancelled, it is interrupted."""
        await self._cover(timeout_s)
        variables = {**await self._environment(), **(envs or {})}
        return await Cell(
            self._kept.bounded,
            self._kept.kernel,
            code,
            timeout_s=timeout_s,
            variables=variables,
            shown_bytes=shown_bytes,
            on_output=on_output,
        ).run()

    @_noticing_death
    async def read_file(self, path: str, *, max_bytes: int = READ_BYTES) -> bytes:
        """Return a file's bytes, if they are no more."""

        async def read() -> bytes:
            async with self._read(path) as chunks:
                try:
                    return await collected(chunks, max_bytes)
                except TooLargeError as exc:
                    raise _too_large(path, max_bytes) from exc

        async with self._kept_alive():
            return await self._again(read)

    @_noticing_death
    async def sha256_of(self, path: str, *, max_bytes: int) -> str:
        """Return the digest of a file's bytes, which are not kept."""

        async def read() -> str:
            digest, room = hashlib.sha256(), max_bytes
            async with self._read(path) as chunks:
                async for chunk in chunks:
                    digest.update(chunk)
                    room -= len(chunk)
                    if room < 0:
                        raise _too_large(path, max_bytes)
            return digest.hexdigest()

        async with self._kept_alive():
            return await self._again(read)

    @asynccontextmanager
    async def _read(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a file to be read piece by piece; the connection is closed at the end of this, in any case."""
        files = self._kept.bounded.files
        limit_s = self._sandbox.connection_config.request_timeout
        with translated_files(path, IsADirectoryError):
            async with await files.read(path, format="stream", request_timeout=limit_s) as chunks:
                yield chunks

    @_noticing_death
    async def write_files(self, files: Mapping[str, bytes]) -> None:
        """Write files, many in one request, making folders as needed; odd names cost a request each."""
        odd = {path for path in files if _ODD.search(path)}
        entries = [WriteEntry(path=path, data=data) for path, data in files.items() if path not in odd]
        async with self._kept_alive():
            for path in odd:
                # In the address, not in a form: what writes forms puts an escape in a name's place (%22).
                await self._write(path, files[path], use_octet_stream=True)
            for at in range(0, len(entries), _WRITTEN_AT_ONCE):
                await self._write_entries(entries[at : at + _WRITTEN_AT_ONCE])

    async def _write(self, path: str, data: bytes | BinaryIO, **how: Any) -> None:
        async def write() -> None:
            with translated_files(path, IsADirectoryError):
                await self._kept.bounded.files.write(path, data, **how)

        await self._again(write)

    async def _write_entries(self, entries: list[WriteEntry]) -> None:
        async def write() -> None:
            with translated_files(", ".join(entry["path"] for entry in entries), IsADirectoryError):
                await self._kept.bounded.files.write_files(entries)

        await self._again(write)

    @_noticing_death
    async def upload(self, path: str, source: BinaryIO) -> None:
        """Write a file of the host's, piece by piece; sent again from where it stood."""
        start = await asyncio.to_thread(source.tell)

        async def write() -> None:
            await asyncio.to_thread(source.seek, start)
            with translated_files(path, IsADirectoryError):
                # The SDK sets no limit of its own where it sends piece by piece.
                async with asyncio.timeout(_UPLOAD_LIMIT_S):
                    await self._kept.bounded.files.write(path, source)

        async with self._kept_alive():
            await self._again(write)

    @_noticing_death
    async def list_files(self, path: str, *, depth: int = 1) -> list[FileEntry]:
        """Return a folder's entries, in the service's order."""

        async def listed() -> list[EntryInfo]:
            with translated_files(path, NotADirectoryError):
                return await self._kept.bounded.files.list(path, depth=depth)

        async with self._kept_alive():
            entries = await self._again(listed)
        return [
            FileEntry(entry.path, "folder" if entry.type is FileType.DIR else "file", entry.size)
            for entry in entries
        ]


def _too_large(path: str, max_bytes: int) -> SandboxAnswerError:
    return SandboxAnswerError(f"{path} has more than {max_bytes} bytes, and is not read")


@dataclass(frozen=True, slots=True)
class _Kept:
    """What this process keeps beside a handle, from one call to the next."""

    bounded: BoundedSandbox
    kernel: Kernel = field(default_factory=Kernel)
    turns: Turns = field(default_factory=Turns)


def _kept_beside(sandbox: Any) -> _Kept:
    """Return it; also of a sandbox that a caller brought."""
    if not hasattr(sandbox, "agent_kept"):
        retries = sandbox.retries if isinstance(sandbox, OwnedSandbox) else Retries()
        sandbox.agent_kept = _Kept(BoundedSandbox.of(sandbox, retries))
    kept: _Kept = sandbox.agent_kept
    return kept
