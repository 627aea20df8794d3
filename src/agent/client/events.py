"""What a run tells its driver, one frozen dataclass a kind of news.

A stream of events ends with exactly one of `Interrupted`, `Finished` or `Failed`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

State = Mapping[str, Any]
"""A thread's state as the server returns it; not copied, not validated."""

NO_ANSWER = "no_answer"
"""In the metadata of the last message where a run of `agent` ended without an answer, or without a whole one:
why, as `cut`, `unfinished`, `refused`, `filtered`, `empty` or `unusable`."""


@dataclass(frozen=True, slots=True)
class Started:
    """The server has accepted the run (also sent when a stream is joined again)."""

    thread_id: str
    run_id: str
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Reconnecting:
    """There is no connection; the stream is about to be joined again. The run goes on meanwhile."""

    reason: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a chat model's answer, as it is written.

    `whole` marks a complete message that a node put into the conversation without streaming it.
    """

    text: str
    node: str = ""
    message_id: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """The graph says what it does now.

    `step` counts from 1; it and `steps` are None outside of a plan's execution.
    """

    phase: str
    message: str
    iteration: int = 0
    step: int | None = None
    steps: int | None = None


@dataclass(frozen=True, slots=True)
class TestReport:
    """How one run of a test suite ended.

    `exit_code` is None when the command was stopped by its limit; `passed` and `failed` are None when the
    output could not be counted. `reason` says why the suite did not pass, where the exit code does
    not: it was stopped, no test ran, protected files changed meanwhile.
    """

    __test__ = False  # pytest would collect the name

    exit_code: int | None = None
    timed_out: bool = False
    passed: int | None = None
    failed: int | None = None
    failing: tuple[str, ...] = ()
    output: str = ""
    skipped: int | None = None
    reason: str = ""

    @property
    def green(self) -> bool:
        """Whether the suite passed."""
        return self.exit_code == 0 and not self.timed_out and not self.reason


@dataclass(frozen=True, slots=True)
class Tests:
    """The test suite has run: before any change (`baseline`) or after (`verify`)."""

    __test__ = False

    phase: str
    report: TestReport


@dataclass(frozen=True, slots=True)
class ToolEvent:
    """A tool started (`text` is its arguments as JSON), wrote output, or ended.

    `heartbeat` says of a silent one that it still works, after `elapsed_s` seconds.
    `result` is the whole text that the model is given; it comes from the conversation, so also from tools
    that report nothing themselves.
    """

    event: Literal["start", "output", "heartbeat", "end", "result"]
    name: str
    tool_call_id: str = ""
    text: str = ""
    elapsed_s: int = 0


@dataclass(frozen=True, slots=True)
class Artifact:
    """A chart, a table or a file that a tool made; `Driver.artifact` fetches it.

    `url` opens in a browser until it expires; empty where the server does not know its own public address.
    """

    mime: str
    name: str
    url: str = ""
    title: str = ""
    size_bytes: int = 0
    tool_call_id: str = ""


@dataclass(frozen=True, slots=True)
class SandboxNotice:
    """A sandbox was created, connected, replaced, paused or ended; `waiting`: its service is waited for."""

    event: str
    sandbox_id: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """A node of the graph has finished; `values` is what it wrote to the state."""

    node: str
    values: Any = None


@dataclass(frozen=True, slots=True)
class Custom:
    """A custom event of a kind this client does not know."""

    data: Any


@dataclass(frozen=True, slots=True)
class Interrupt:
    """One question the graph waits for an answer to."""

    id: str
    value: Any


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The run waits for a human; answer by id.

    Without questions the server has lost what was asked: `Driver.ask_again`.
    """

    interrupts: tuple[Interrupt, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The run has ended and its thread waits for nothing."""

    values: State = field(default_factory=dict)

    @property
    def no_answer(self) -> str:
        """Why the conversation in `values` ends without a whole answer in words; empty where it has one."""
        messages = self.values.get("messages")
        last = messages[-1] if isinstance(messages, list) and messages else None
        if not isinstance(last, Mapping) or last.get("type") != "ai":
            return ""
        about = last.get("response_metadata")
        why = about.get(NO_ANSWER) if isinstance(about, Mapping) else None
        if isinstance(why, str):
            return why
        return "" if last.get("tool_calls") or _has_words(last.get("content")) else "empty"


def _has_words(content: Any) -> bool:
    if not isinstance(content, list):
        return isinstance(content, str) and bool(content.strip())
    texts = (block.get("text") if isinstance(block, Mapping) else block for block in content)
    return any(isinstance(text, str) and text.strip() for text in texts)


@dataclass(frozen=True, slots=True)
class Failed:
    """The run ended without an answer: an error, a cancel or a limit of time.

    `message` is the server's own text. `pending` holds the questions that can still be answered: a malformed
    answer fails the run and leaves its question open.
    """

    message: str
    error: str = ""
    status: str = "error"
    pending: tuple[Interrupt, ...] = ()


Event = (
    Started
    | Reconnecting
    | Token
    | Progress
    | Tests
    | ToolEvent
    | Artifact
    | SandboxNotice
    | Update
    | Custom
    | Interrupted
    | Finished
    | Failed
)
Outcome = Interrupted | Finished | Failed
