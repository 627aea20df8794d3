"""How a chat looks on the screen: words as they are written, code, its output, charts as files."""

import json
import re
import tempfile
from pathlib import Path

from agent.cli.flow import Flow
from agent.cli.follow import say_it_failed
from agent.cli.screen import Busy, Screen
from agent.cli.tool_view import arguments_line, result_digest
from agent.cli.visible import code as coloured
from agent.cli.visible import one_line
from agent.client import Artifact, Event, Failed, Finished, SandboxNotice, Token, ToolEvent
from agent.client.decode import message_text
from agent.client.fields import objects

_RESULT = re.compile(r"<result(?:-\d+)?>\n(.*?)\n</result", re.DOTALL)
_MOST_CHARTS = 1000  # of one conversation
_MOST_CHART_BYTES = 1_000_000_000
_PICTURE = re.compile(r"\[(image/|application/pdf)")  # it is shown or saved itself
_ERROR = re.compile(r"<error(?:-\d+)?>\n(.*?)\n</error", re.DOTALL)
_LINE_END = "\n"
_NO_WORDS = "The model gave no answer in words."
# Never the name's own, which may be anything.
_ENDINGS = {
    "application/pdf": ".pdf",
    "image/gif": ".gif",
    "image/jpeg": ".jpeg",
    "image/png": ".png",
    "image/svg+xml": ".svg",
    "image/webp": ".webp",
}
_BAD = ("error:", "exit_code", "timed out", "outcome unknown")


class ChatView:
    """Shows the events of a run of `agent` as they come.

    Args:
        screen: where to write.
        charts: folder for charts; default a new temporary one, made for the first chart.
    """

    def __init__(self, screen: Screen, *, charts: Path | None = None) -> None:
        self._screen = screen
        self._charts = charts
        self._saved = self._saved_bytes = 0
        self._busy: Busy | None = None
        self._in_line = False
        self._message_id = ""
        self._spoke = False
        # Without a terminal lines are left as they come.
        self._flow = Flow(screen.console.width) if screen.is_terminal else None

    def follow(self, busy: Busy | None) -> None:
        """Take the spinner away when the first news comes; finish the line when nothing more comes."""
        self._busy = busy
        if busy is None:
            self._end_line()

    def show(self, event: Event) -> None:
        """Show one event; kinds that carry nothing for a reader are passed over."""
        match event:
            case Token():
                self._token(event)
            case ToolEvent():
                self._tool(event)
            case SandboxNotice(event="replaced" | "waiting"):
                self._line(f"  sandbox: {event.message}", "yellow")
            case Finished():
                self._finish(event)
            case Failed():
                self._end_of_words()
                say_it_failed(self._screen, event)
            case _:
                return

    def takes(self, artifact: Artifact) -> bool:
        """Fetch pictures and documents, not without end; data for programs stays on the server."""
        if self._saved >= _MOST_CHARTS or self._saved_bytes > _MOST_CHART_BYTES:
            return False
        return artifact.mime.startswith("image/") or artifact.mime == "application/pdf"

    def take(self, artifact: Artifact, data: bytes) -> None:
        """Save a chart, say where, and draw it where the terminal can."""
        if self._charts is None:
            self._charts = Path(tempfile.mkdtemp(prefix="sandbox-agent-charts-"))
        self._charts.mkdir(parents=True, exist_ok=True)
        self._saved += 1
        self._saved_bytes += len(data)
        path = self._charts / f"chart-{self._saved}{_ENDINGS.get(artifact.mime, '.bin')}"
        path.write_bytes(data)
        self._line(f"  chart: {path}", "green")
        self._screen.picture(data)

    def _token(self, event: Token) -> None:
        if event.whole and event.message_id == self._message_id:
            return  # it was streamed already
        self._quiet()
        self._spoke = True
        if event.message_id != self._message_id:
            self._end_line()
            self._message_id = event.message_id
        self._words(self._flow.feed(event.text) if self._flow else event.text)

    def _finish(self, event: Finished) -> None:
        """Give the last words where none were streamed, as in a run that another client started."""
        messages = objects(event.values.get("messages"))
        if messages and messages[-1].get("type") == "ai":
            words = message_text(messages[-1].get("content"))
            if not self._spoke or (event.no_answer == "empty" and not words.strip()):
                self._end_of_words()
                self._screen.said("", words if words.strip() else _NO_WORDS)
        self._spoke = False

    def _words(self, text: str) -> None:
        if text:
            self._screen.write(text)
            self._in_line = not text.endswith("\n")

    def _tool(self, event: ToolEvent) -> None:
        if event.event == "start":
            self._start(event)
            self._wait(event.name)
        elif event.event == "heartbeat":
            self._wait(f"{one_line(event.name)}, {event.elapsed_s} s")
        elif event.event == "output":
            self._quiet()
            self._screen.write(_indented(event.text, at_start=not self._in_line), "dim")
            self._in_line = not event.text.endswith("\n")
        elif event.event == "end":
            self._end(event)
            self._wait("Thinking")

    def _start(self, event: ToolEvent) -> None:
        code = _code(event.text) if event.name == "run_python" else None
        name = one_line(event.name)
        if code is None:
            self._line(f"  {name} {arguments_line(event.text)}", "cyan")
            return
        self._line(f"  {name}", "cyan")
        if self._screen.is_terminal:
            self._screen.show(coloured(code, "python"))
        else:
            self._screen.indented(code, "    ")

    def _end(self, event: ToolEvent) -> None:
        result, error = _RESULT.search(event.text), _ERROR.search(event.text)
        shown = [line for line in result[1].split("\n") if not _PICTURE.match(line)] if result else []
        for line in shown:
            self._line(f"    {line}", "dim")
        if error:
            self._line(f"    {error[1].partition(_LINE_END)[0]}", "red")
        digest = "" if result or error else result_digest(event.text)
        if digest and not digest.startswith("exit_code: 0"):
            self._line(f"    {digest}", "red" if digest.startswith(_BAD) else "dim")

    def _line(self, text: str, style: str = "") -> None:
        self._end_of_words()
        self._screen.line(text, style)

    def _end_of_words(self) -> None:
        self._quiet()
        self._end_line()

    def _end_line(self) -> None:
        if self._flow:
            self._words(self._flow.end())
        if self._in_line:
            self._screen.line()
            self._in_line = False

    def _wait(self, message: str) -> None:
        # On a line that is not finished it would write over what stands there.
        if self._busy is not None and not self._in_line:
            self._busy.go_on(message)

    def _quiet(self) -> None:
        if self._busy is not None:
            self._busy.stop()


def _code(arguments: str) -> str | None:
    try:
        code = json.loads(arguments).get("code")
    except (ValueError, AttributeError, RecursionError):
        return None
    return code if isinstance(code, str) else None


def _indented(text: str, *, at_start: bool) -> str:
    body = text.removesuffix("\n")
    shown = body.replace("\n", "\n    ")
    return f"{'    ' if at_start else ''}{shown}{text[len(body) :]}"
