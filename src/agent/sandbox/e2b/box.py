"""Work inside one E2B sandbox."""

import asyncio
import functools
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from e2b import AsyncCommandHandle, CommandExitException, InvalidArgumentException, TimeoutException
from e2b.exceptions import NotFoundException, SandboxNotRunningException, SandboxUnreachableException
from e2b.sandbox.filesystem.filesystem import FileType
from e2b_code_interpreter.code_interpreter_async import AsyncSandbox
from e2b_code_interpreter.models import Execution, OutputMessage, Result

from agent.errors import SandboxGoneError, SandboxTemplateError, SandboxUnreachableError
from agent.sandbox.e2b.endings import TAG, end_tree, new_tag, to_its_end
from agent.sandbox.e2b.errors import meaning, translated, translated_files
from agent.sandbox.lease import Lease
from agent.sandbox.output import BoundedText
from agent.sandbox.policy import SandboxPolicy
from agent.sandbox.provider import CodeError, CodeResult, CommandResult, FileEntry, OutputHandler, RichResult

MAX_KEPT_CHARS = 1_000_000
"""Of each output stream of one call; more is counted and dropped as it arrives."""

MIME_TYPES = {
    "text": "text/plain",
    "html": "text/html",
    "markdown": "text/markdown",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "pdf": "application/pdf",
    "latex": "text/latex",
    "javascript": "application/javascript",
}


class OwnedSandbox(AsyncSandbox):
    """The SDK's sandbox, made or found by this package; tools written for the SDK use it as it is."""

    lease: Lease
    policy: SandboxPolicy | None = None
    gone: bool = False
    environment: Callable[[], Awaitable[Mapping[str, str]]] | None = None
    """Asked before each command and cell for the variables that it is given; None means none."""


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

    @property
    def sandbox_id(self) -> str:
        """The sandbox's id."""
        return self._sandbox.sandbox_id

    @property
    def policy(self) -> SandboxPolicy | None:
        """The policy the sandbox lives by; None for one that a caller brought."""
        return self._sandbox.policy if isinstance(self._sandbox, OwnedSandbox) else None

    async def _cover(self, work_s: float) -> None:
        lifetime = self._lease.needed_for(work_s) if self._lease else None
        if self._lease and lifetime:
            with translated():
                # connect, not set_timeout: it never shortens what another process may have asked for.
                await self._sandbox.connect(timeout=lifetime)
            self._lease.renewed(lifetime)

    @_noticing_death
    async def run_command(
        self,
        command: str,
        *,
        timeout_s: float,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        on_output: OutputHandler | None = None,
    ) -> CommandResult:
        """Run a command line; its limit is enforced by the sandbox, which kills it."""
        await self._cover(timeout_s)
        tag, handle = new_tag(), None
        variables = {**await self._environment(), **(envs or {}), TAG: tag}
        streams = _Streams(on_output)
        started = time.monotonic()
        exit_code: int | None = None
        timed_out = False
        try:
            handle = await self._sandbox.commands.run(
                command,
                background=True,
                envs=variables,
                cwd=cwd,
                timeout=timeout_s,
                on_stdout=streams.stdout,
                on_stderr=streams.stderr,
                retain_output=False,
            )
            exit_code = (await handle.wait()).exit_code
        except CommandExitException as exc:
            exit_code = exc.exit_code
        # Order: both are subclasses of TimeoutException, which alone means the command's own limit.
        except SandboxNotRunningException as exc:
            raise meaning(exc) from exc
        except SandboxUnreachableException as exc:
            # The connection broke. Where the sandbox lives on, it is the outcome that is not known.
            if handle is None or not await self._ends(tag, handle):
                raise meaning(exc) from exc
        except TimeoutException as exc:
            await end_tree(self._sandbox, tag, handle.pid if handle else None)
            if handle is None and time.monotonic() - started < timeout_s:
                raise SandboxUnreachableError("the sandbox did not start the command in time") from exc
            timed_out = True
        except asyncio.CancelledError:
            await to_its_end(self._abandon(tag, handle))
            raise
        except InvalidArgumentException as exc:
            # The SDK's word for a folder to run in that is not there.
            raise NotADirectoryError(str(exc)) from exc
        except Exception as exc:
            if "without an end event" not in str(exc):
                raise meaning(exc) from exc
            await end_tree(self._sandbox, tag, handle.pid if handle else None)
        return CommandResult(
            exit_code, *streams.texts(), timed_out=timed_out, duration_s=time.monotonic() - started
        )

    async def _environment(self) -> Mapping[str, str]:
        """Return what the deployment gives every command and cell; asked anew, since values change."""
        handle = self._sandbox
        wanted = handle.environment if isinstance(handle, OwnedSandbox) else None
        return await wanted() if wanted else {}

    async def _ends(self, tag: str, handle: AsyncCommandHandle[None]) -> bool:
        with translated():
            info = await self._sandbox.get_info()
        # Any request would wake a paused sandbox, and the command would run on.
        return info.state.value == "running" and await end_tree(self._sandbox, tag, handle.pid)

    async def _abandon(self, tag: str, handle: AsyncCommandHandle[None] | None) -> None:
        if handle:
            await handle.disconnect()
        with suppress(SandboxGoneError):
            await end_tree(self._sandbox, tag, handle.pid if handle else None)

    @_noticing_death
    async def run_code(
        self,
        code: str,
        *,
        timeout_s: float,
        envs: Mapping[str, str] | None = None,
        on_output: OutputHandler | None = None,
    ) -> CodeResult:
        """Run Python in the sandbox's default kernel; at the limit, or when cancelled, it is interrupted."""
        await self._cover(timeout_s)
        variables = {**await self._environment(), **(envs or {})}
        streams = _Streams(on_output)
        started = time.monotonic()
        execution = Execution()
        timed_out = False
        try:
            execution = await self._sandbox.run_code(
                code,
                envs=variables or None,
                timeout=timeout_s,
                on_stdout=streams.stdout_message,
                on_stderr=streams.stderr_message,
            )
        except TimeoutException as exc:
            await self._explain_timeout(exc)
            timed_out = True
        except NotFoundException as exc:
            raise SandboxTemplateError(f"the sandbox has no Python kernel: {exc}") from exc
        except Exception as exc:
            raise meaning(exc) from exc
        return CodeResult(
            *streams.texts(),
            results=tuple(_rich(result) for result in execution.results),
            error=_error(execution),
            timed_out=timed_out,
            duration_s=time.monotonic() - started,
        )

    async def _explain_timeout(self, exc: TimeoutException) -> None:
        """Raise unless the cell's own limit is what ended it.

        The SDK says "timeout" for a slow cell, a dead sandbox, a paused one and a closed port alike. Asking
        the control plane tells them apart without waking a paused sandbox.
        """
        if "Execution timed out" in str(exc):
            return
        with translated():
            info = await self._sandbox.get_info()
        if info.state.value == "paused":
            raise SandboxUnreachableError("the sandbox was paused while the code ran") from exc
        if "port is not open" in str(exc):
            raise SandboxTemplateError(
                f"the template {info.template_id!r} does not serve the code interpreter (port 49999 is "
                "closed): its start command is missing"
            ) from exc
        raise SandboxUnreachableError(f"the sandbox did not answer: {exc}") from exc

    @_noticing_death
    async def read_file(self, path: str) -> bytes:
        """Return a file's bytes."""
        await self._cover(0)
        with translated_files(path, IsADirectoryError):
            return bytes(await self._sandbox.files.read(path, format="bytes"))

    @_noticing_death
    async def write_files(self, files: Mapping[str, bytes]) -> None:
        """Write files in one request, making folders as needed."""
        await self._cover(0)
        with translated_files(", ".join(files), IsADirectoryError):
            await self._sandbox.files.write_files(
                [{"path": path, "data": data} for path, data in files.items()]
            )

    @_noticing_death
    async def list_files(self, path: str, *, depth: int = 1) -> list[FileEntry]:
        """Return a folder's entries, in the service's order."""
        await self._cover(0)
        with translated_files(path, NotADirectoryError):
            entries = await self._sandbox.files.list(path, depth=depth)
        return [
            FileEntry(entry.path, "folder" if entry.type is FileType.DIR else "file", entry.size)
            for entry in entries
        ]


class _Streams:
    """Collects both output streams, passing each piece on as it arrives."""

    def __init__(self, handler: OutputHandler | None) -> None:
        self._handler = handler
        self._kept = {"stdout": BoundedText(MAX_KEPT_CHARS), "stderr": BoundedText(MAX_KEPT_CHARS)}

    async def _take(self, stream: Literal["stdout", "stderr"], piece: str) -> None:
        self._kept[stream].add(piece)
        if self._handler:
            await self._handler(stream, piece)

    async def stdout(self, piece: str) -> None:
        await self._take("stdout", piece)

    async def stderr(self, piece: str) -> None:
        await self._take("stderr", piece)

    async def stdout_message(self, message: OutputMessage) -> None:
        await self._take("stdout", message.line)

    async def stderr_message(self, message: OutputMessage) -> None:
        await self._take("stderr", message.line)

    def texts(self) -> tuple[str, str]:
        return self._kept["stdout"].text(), self._kept["stderr"].text()


def _rich(result: Result) -> RichResult:
    data = {
        mime: value for name, mime in MIME_TYPES.items() if isinstance(value := getattr(result, name), str)
    }
    if result.json is not None:
        data["application/json"] = json.dumps(result.json)
    return RichResult(data, result.is_main_result)


def _error(execution: Execution) -> CodeError | None:
    error = execution.error
    return CodeError(error.name, error.value, error.traceback) if error else None
