"""Running one command to its end, whatever that is."""

import asyncio
import shlex
import time
from collections.abc import Mapping
from contextlib import suppress

from e2b import AsyncCommandHandle, CommandExitException, InvalidArgumentException, TimeoutException
from e2b.exceptions import SandboxNotRunningException, SandboxUnreachableException

from agent.errors import SandboxError, SandboxGoneError, SandboxUnreachableError
from agent.sandbox.e2b.bounds import BoundedSandbox
from agent.sandbox.e2b.endings import TAG, certain, end_tree, new_tag, to_its_end
from agent.sandbox.e2b.errors import meaning, translated
from agent.sandbox.e2b.inside import COMMAND, PROGRAM, RUN_PROGRAM
from agent.sandbox.e2b.streams import Streams
from agent.sandbox.provider import OUTPUT_FOLDER, CommandResult, OutputHandler

MAX_LINE_BYTES = 120_000
"""Linux takes no argument longer than 128 KB; a longer command line goes into a file first."""

_RAN_ALREADY = 113
_START = f"""\
[[ -d {OUTPUT_FOLDER} ]] || mkdir -p -m 1777 {OUTPUT_FOLDER}
set -C; {{ : > {OUTPUT_FOLDER}/.$t; }} 2> /dev/null || [[ ! -e {OUTPUT_FOLDER}/.$t ]] || exit {_RAN_ALREADY}
set +C
"""
"""Comes first: starts the command once, however often the request for it arrives."""
_SPOOLED = f"""\
if command -v python3 > /dev/null; then
    export {PROGRAM}="$p" AGENT_LINE="$c"
    exec python3 -I -S -c '{RUN_PROGRAM}' {OUTPUT_FOLDER}/$n $m
fi
"""
"""Comes next for a command whose output may be long; without Python it is not spooled."""
_PLAIN = 'exec bash -c "$c"\n'


class Command:
    """One command line in a sandbox.

    Args:
        sandbox: where it runs.
        line: the command line.
        timeout_s: its limit, in seconds.
        cwd: the folder it starts in; None means home.
        variables: its environment, besides the sandbox's own.
        shown_bytes: how much of its output the caller shows.
        spooled: whether the whole of long output is kept in a file.
        on_output: called with each piece of output.
    """

    def __init__(
        self,
        sandbox: BoundedSandbox,
        line: str,
        *,
        timeout_s: float,
        cwd: str | None,
        variables: Mapping[str, str],
        shown_bytes: int,
        spooled: bool,
        on_output: OutputHandler | None,
    ) -> None:
        self._sandbox = sandbox
        self._line = line
        self._timeout_s = timeout_s
        self._cwd = cwd
        self._tag = new_tag()
        self._variables = {**variables, TAG: self._tag}
        self._spooled = spooled
        self._streams = Streams(self._tag[:8], shown_bytes, on_output)
        self._handle: AsyncCommandHandle[None] | None = None

    async def run(self) -> CommandResult:
        """Run it; at its limit, and when this is cancelled, everything it started is ended."""
        started = time.monotonic()
        exit_code: int | None = None
        timed_out = False
        try:
            exit_code = await self._followed()
        except (SandboxNotRunningException, SandboxUnreachableException) as exc:
            # The connection broke. Where the sandbox lives on, it is the outcome that is not known.
            if self._handle is None or not await self._ended_where_alive():
                raise meaning(exc) from exc
        except TimeoutException:
            # Alone, after its subclasses above, it means the command's own limit.
            timed_out = True
            await end_tree(self._sandbox, self._tag, self._pid, self._streams)
        except asyncio.CancelledError:
            await to_its_end(self._abandon())
            raise
        except SandboxError:
            raise
        except InvalidArgumentException as exc:
            if "cwd" in str(exc):
                raise NotADirectoryError(f"there is no folder {self._cwd}") from exc
            raise meaning(exc) from exc
        except Exception as exc:
            if "without an end event" not in str(exc):
                raise await certain(self._sandbox, meaning(exc)) from exc
            await end_tree(self._sandbox, self._tag, self._pid, self._streams)
        stdout, stderr, spooled = self._streams.end()
        return CommandResult(
            exit_code, stdout, stderr, timed_out, duration_s=time.monotonic() - started, spooled=spooled
        )

    @property
    def _pid(self) -> int | None:
        return self._handle.pid if self._handle else None

    async def _followed(self) -> int | None:
        line = await self._prepared()
        started = time.monotonic()
        try:
            self._handle = await self._start(line)
        except SandboxNotRunningException:
            raise
        except (SandboxUnreachableException, TimeoutException):
            if time.monotonic() - started >= self._timeout_s:
                raise
            # It may have been started without our hearing of it; started twice it will not be.
            self._handle = await self._start_again(line)
        try:
            return (await self._handle.wait()).exit_code
        except CommandExitException as exc:
            if exc.exit_code == _RAN_ALREADY and not self._streams.any:
                await end_tree(self._sandbox, self._tag, None, self._streams)
                return None
            return exc.exit_code

    async def _start(self, line: str) -> AsyncCommandHandle[None]:
        return await self._sandbox.started(
            line,
            envs=self._variables,
            cwd=self._cwd,
            timeout=self._timeout_s,
            on_stdout=self._streams.stdout,
            on_stderr=self._streams.stderr,
        )

    async def _start_again(self, line: str) -> AsyncCommandHandle[None]:
        try:
            return await self._start(line)
        except SandboxNotRunningException:
            raise
        except (SandboxUnreachableException, TimeoutException) as exc:
            raise SandboxUnreachableError(
                "the sandbox is not responding: it did not confirm the start of the command, asked twice; "
                "whether it ran is not known"
            ) from exc

    async def _prepared(self) -> str:
        """Return the line that starts the command."""
        if len(self._line.encode()) > MAX_LINE_BYTES - len(COMMAND) - 2000:
            path = f"{OUTPUT_FOLDER}/{self._tag[:8]}.sh"
            await self._sandbox.files.write(path, self._line)
            self._line = f". {path}"
        given = {"t": self._tag, "c": self._line}
        start = _START + _PLAIN
        if self._spooled:
            streams = self._streams
            measures = f"{streams.nonce} {streams.passed_bytes} {streams.spooled_from}"
            given |= {"n": self._tag[:8], "m": measures, "p": COMMAND}
            start = _START + _SPOOLED + _PLAIN
        return "".join(f"{name}={shlex.quote(value)}\n" for name, value in given.items()) + start

    async def _ended_where_alive(self) -> bool:
        with translated():
            info = await self._sandbox.get_info()
        # Any request would wake a paused sandbox, and the command would run on.
        if info.state.value != "running":
            return False
        return await end_tree(self._sandbox, self._tag, self._pid, self._streams)

    async def _abandon(self) -> None:
        if self._handle:
            await self._handle.disconnect()
        with suppress(SandboxGoneError):
            await end_tree(self._sandbox, self._tag, self._pid)
