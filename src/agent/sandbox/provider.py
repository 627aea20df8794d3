"""What this package asks of a sandbox service, and the results it gets back.

Two Protocols: `Provider` makes, finds and ends sandboxes; `Box` runs code and moves files in one. The
results are frozen: a non-zero exit, an exception in a cell and a timeout of the command are data. What the
service itself failed at is raised, as one of `agent.errors.SandboxError`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO, Literal, Protocol

from agent.errors import SandboxError
from agent.sandbox.policy import SandboxPolicy
from agent.sandbox.retries import Retries
from agent.sandbox.turns import Turns

OutputHandler = Callable[[Literal["stdout", "stderr"], str], Awaitable[None]]
"""Called with each piece of output as it arrives."""

OUTPUT_FOLDER = "/tmp/agent-output"
"""Where sandboxes keep what was too long to pass on."""

READ_BYTES = 16_000_000
"""How much of a file a caller takes that does not say otherwise."""

SHOWN_BYTES = 16_384
"""How much output a caller shows that does not say otherwise."""


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What a new sandbox is made from."""

    template: str
    lease_s: int
    """How long it lives unattended, in seconds, before it is paused."""
    metadata: Mapping[str, str]
    idempotency_key: str
    """1 to 255 lowercase letters, digits, hyphens; a second create with the same key makes no second one."""
    internet: Literal["off", "on"] | Sequence[str] = "off"
    """Whether code in it reaches the internet; a list names the only hosts it reaches."""
    on_timeout: Literal["pause", "kill"] = "pause"
    """What the service does when its lease runs out."""


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """What the service says about a sandbox without waking it."""

    sandbox_id: str
    state: Literal["running", "paused"]
    metadata: Mapping[str, str]
    started_at: datetime
    end_at: datetime
    """When a running one's lease ends; of a paused one, when it was paused."""


class Handle(Protocol):
    """A live connection to a sandbox; what tools find in `runtime.context.sandbox`."""

    policy: SandboxPolicy | None
    environment: Callable[[], Awaitable[Mapping[str, str]]] | None
    """Looked up before each command and cell: the variables it is given, never in its arguments."""
    retries: Retries
    """How patiently requests into the sandbox that may be repeated are sent again."""
    gone: bool
    """Set once the service has said, in answer to any work, that the sandbox is no more."""

    @property
    def sandbox_id(self) -> str:
        """The sandbox's id."""


@dataclass(frozen=True, slots=True)
class Spooled:
    """The file in the sandbox that holds the whole of something printed."""

    path: str
    total_bytes: int
    """How much was printed."""
    kept_bytes: int
    """How much of it the file holds: less than all beyond 64 MB, or where the disk is full."""
    left_out: int = 0
    """How many bytes are missing from the text that came with this."""
    goes_on: bool = False
    """What the call left running in the background still prints to the file."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a shell command ended.

    `exit_code` is None when the command was stopped at its limit (`timed_out`) or when its end was never
    seen: then its outcome is unknown, neither success nor failure.
    """

    exit_code: int | None
    stdout: str
    stderr: str
    timed_out: bool = False
    duration_s: float = 0.0
    spooled: Mapping[str, Spooled] = field(default_factory=dict)
    """By the name of the stream: where the whole of one is kept that was too long for the caller."""


@dataclass(frozen=True, slots=True)
class BackgroundResult:
    """How a command in the background is doing, and what it printed since it was last asked about."""

    command_id: str
    running: bool
    exit_code: int | None
    """None while it runs, when it was stopped, and when its end was not seen (the sandbox was restored)."""
    stopped: bool
    stdout: str
    stderr: str
    duration_s: float
    spooled: Mapping[str, Spooled] = field(default_factory=dict)
    """By the name of the stream, where it printed something new: the file with all it ever printed."""


@dataclass(frozen=True, slots=True)
class CodeError:
    """The exception that ended a cell."""

    name: str
    value: str
    traceback: str


@dataclass(frozen=True, slots=True)
class RichResult:
    """One thing a cell displayed: its forms by MIME type; images and PDF as base64."""

    data: Mapping[str, str]
    is_main: bool
    """The value of the cell's last expression, rather than something displayed on the way."""


@dataclass(frozen=True, slots=True)
class CodeResult:
    """How a cell ended."""

    stdout: str
    stderr: str
    results: Sequence[RichResult] = field(default_factory=tuple)
    error: CodeError | None = None
    timed_out: bool = False
    duration_s: float = 0.0
    spooled: Mapping[str, Spooled] = field(default_factory=dict)
    """By `stdout`, `stderr`, or `result-1` and so on: where the whole is kept of what was too long."""
    restarted: bool = False
    """The kernel was started anew since the last cell, or by this one: variables and imports are lost."""
    died: Literal["", "in the cell", "before the cell", "unknown"] = ""
    """Where the kernel died under the cell: whether the cell had begun. Before, nothing of it ran."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file or folder."""

    path: str
    kind: Literal["file", "folder"]
    size_bytes: int


class Box(Protocol):
    """Work inside one sandbox.

    Every method may raise `SandboxGoneError`, `SandboxUnreachableError` or another `SandboxError`; the
    sandbox's state is then whatever the service left. Missing files raise FileNotFoundError, and wrong kinds
    (a folder where a file is needed) IsADirectoryError or NotADirectoryError, as the standard library's.
    """

    @property
    def sandbox_id(self) -> str:
        """The sandbox's id."""

    @property
    def policy(self) -> SandboxPolicy | None:
        """The policy the sandbox lives by; None for one that a caller brought."""

    @property
    def turns(self) -> Turns:
        """The turns of calls in this sandbox."""

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
        """Run a command line in bash; a non-zero exit is a result.

        At its limit, and when the caller is cancelled, all its processes are ended. What it leaves running in
        the background does not hold it back.

        Args:
            command: the command line.
            timeout_s: its limit, in seconds.
            cwd: the folder to run in; default the sandbox's home.
            envs: variables besides those of the handle's `environment`.
            shown_bytes: how much the caller will show of it; of more than that head and tail come back, a few
                times as much, and the whole is kept in a file in the sandbox.
            spooled: False for a script of ours that prints little and starts nothing in the background: it
                runs without the program that measures output, which takes as long to start as a short script.
                The lease is renewed while it runs, and not beforehand for its whole limit.
            on_output: called with each piece as it arrives.
        """

    async def start_command(
        self, command: str, *, cwd: str | None = None, envs: Mapping[str, str] | None = None
    ) -> str:
        """Start a command that runs on in the background, as long as the sandbox lives; return its id."""

    async def poll_command(
        self, command_id: str, *, wait_s: float = 0, shown_bytes: int = SHOWN_BYTES
    ) -> BackgroundResult:
        """Return what a command in the background printed since it was last asked about, and whether it runs.

        Args:
            command_id: as `start_command` returned it, in any process.
            wait_s: how long to wait for its end, in seconds.
            shown_bytes: as of `run_command`.

        Raises:
            FileNotFoundError: no such command was started in this sandbox.
        """

    async def stop_command(self, command_id: str, *, shown_bytes: int = SHOWN_BYTES) -> BackgroundResult:
        """End a command in the background with all it started; one that has ended is left as it is."""

    async def work_on_files(self, /, operation: str, **request: Any) -> dict[str, Any]:
        """Do one of the operations of `e2b/inside/files.py`: paths and links cannot lead out of its `root`.

        Raises:
            OSError: what it failed at, as the standard library's class for it.
            ValueError: the request is too large, or a pattern cannot be used.
        """

    async def run_code(
        self,
        code: str,
        *,
        timeout_s: float,
        envs: Mapping[str, str] | None = None,
        shown_bytes: int = SHOWN_BYTES,
        on_output: OutputHandler | None = None,
    ) -> CodeResult:
        """Run Python in the sandbox's kernel; variables stay for the next call.

        At its limit, and when the caller is cancelled, the cell is interrupted. Arguments as of
        `run_command`.
        """

    async def read_file(self, path: str, *, max_bytes: int = READ_BYTES) -> bytes:
        """Return a file's bytes.

        Raises:
            SandboxAnswerError: there are more than `max_bytes`; the rest is not read.
        """

    async def sha256_of(self, path: str, *, max_bytes: int) -> str:
        """Return the digest of a file's bytes, which are not held; as `read_file` otherwise."""

    async def write_files(self, files: Mapping[str, bytes]) -> None:
        """Write files, making folders as needed."""

    async def upload(self, path: str, source: BinaryIO) -> None:
        """Write a file from where `source` stands to its end, piece by piece, making folders as needed."""

    async def list_files(self, path: str, *, depth: int = 1) -> list[FileEntry]:
        """Return the entries of a folder, `depth` levels down."""


class Provider(Protocol):
    """Makes, finds and ends sandboxes."""

    async def create(self, spec: SandboxSpec) -> Handle:
        """Make a sandbox.

        Raises:
            SandboxKeyError, SandboxQuotaError, SandboxTemplateError: none was made.
            SandboxUnreachableError: whether one was made is not known; the same key finds out.
        """

    async def connect(self, sandbox_id: str, lease_s: int) -> Handle:
        """Connect, waking a paused sandbox; it then lives for at least `lease_s` seconds more.

        Raises:
            SandboxGoneError: there is no such sandbox.
        """

    async def inspect(self, sandbox_id: str) -> SandboxInfo:
        """Look at a sandbox without waking it.

        Raises:
            SandboxGoneError: there is no such sandbox.
        """

    async def cut_internet(self, sandbox_id: str, *, except_for: Sequence[str] = ()) -> None:
        """Take the internet from a running sandbox, but for these hosts."""

    def meaning(self, exc: Exception) -> SandboxError:
        """Say which of our errors an exception of the service's SDK is, for tools that use the SDK itself."""

    async def pause(self, sandbox_id: str) -> None:
        """Pause it, memory included; one already paused or gone is left as it is."""

    async def kill(self, sandbox_id: str) -> bool:
        """End it; False where there was none."""

    def find(self, metadata: Mapping[str, str]) -> AsyncIterator[SandboxInfo]:
        """Yield the running and paused sandboxes that carry all of `metadata`."""
