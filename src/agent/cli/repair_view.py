"""How a repair looks on the screen: tests, plan, steps, diff."""

from agent.cli.follow import say_it_failed
from agent.cli.repair_text import diff_lines, report_lines
from agent.cli.screen import Busy, Screen
from agent.cli.tool_view import ToolView
from agent.cli.visible import one_line
from agent.client import Artifact, Event, Failed, Finished, Progress, SandboxNotice, Tests, Token, ToolEvent

_LONGEST_PARTIAL = 100_000  # characters of a line whose end has not come

# The plan's own heading comes with the question about it.
_HEADINGS = {"bootstrap": "Tests before", "execute": "Steps", "verify": "Tests after"}


class RepairView:
    """Shows the events of a `plan_execute` run as they come.

    Args:
        screen: where to write.
        verbose: also the tools' results, the model's words and the tests' whole output.
    """

    def __init__(self, screen: Screen, *, verbose: bool = False) -> None:
        self._screen = screen
        self._verbose = verbose
        self._busy: Busy | None = None
        self._tools = ToolView(screen, verbose=verbose)
        self._at: tuple[str, int, int | None] = ("", 0, None)
        self._words = ""
        self._message_id = ""

    def follow(self, busy: Busy | None) -> None:
        """Send what is going on now to a spinner, or to none."""
        self._busy = busy
        self._tools.busy = busy

    def show(self, event: Event) -> None:
        """Show one event; kinds that carry nothing for a reader are passed over."""
        if isinstance(event, Token):
            self._token(event)
            return
        self._end_of_words()
        match event:
            case Progress():
                self._progress(event)
            case Tests():
                self._tests(event)
            case ToolEvent():
                self._tools.show(event)
            case SandboxNotice():
                self._sandbox(event)
            case Failed():
                say_it_failed(self._screen, event)
            case _:
                return

    def takes(self, artifact: Artifact) -> bool:
        """Fetch nothing: a repair is about text."""
        return False

    def take(self, artifact: Artifact, data: bytes) -> None:
        """Take nothing; see `takes`."""

    def _progress(self, event: Progress) -> None:
        if self._busy is not None:
            done = None if event.step is None else event.step - 1
            self._busy.update(event.message, done, event.steps)
        at = (event.phase, event.iteration, event.step if event.phase == "execute" else None)
        if at == self._at:
            return
        if at[:2] != self._at[:2] and event.phase in _HEADINGS:
            again = f" (try {event.iteration})" if event.iteration > 1 else ""
            self._screen.heading(_HEADINGS[event.phase] + again)
        self._at = at
        if at[2] is not None:
            self._screen.line(f"  {event.step} of {event.steps}  {one_line(event.message)}", "bold cyan")

    def _tests(self, event: Tests) -> None:
        for line in report_lines(event.report):
            self._screen.line(line)
        if self._verbose and event.report.output:
            self._screen.indented(event.report.output.rstrip("\n"), "      ", "dim")

    def _sandbox(self, event: SandboxNotice) -> None:
        is_news = event.event in {"replaced", "waiting"}
        said = one_line(event.message or event.event)
        which = f"sandbox {one_line(event.sandbox_id)}".rstrip()
        self._screen.line(f"  {which}: {said}", "yellow" if is_news else "dim")

    def _token(self, event: Token) -> None:
        # Whole messages are for chat front ends: plan, reports and diff, which are shown better here.
        if event.whole or not self._verbose:
            return
        if event.message_id != self._message_id:
            self._end_of_words()
            self._message_id = event.message_id
        *lines, words = (self._words + event.text).split("\n")
        self._words = words[-_LONGEST_PARTIAL:]
        for line in lines:
            self._screen.line(f"    {line}", "italic")

    def _end_of_words(self) -> None:
        if self._words.strip():
            self._screen.line(f"    {self._words}", "italic")
        self._words = ""


def show_result(screen: Screen, outcome: Finished) -> str:
    """Show the diff and how the repair ended, and return its `status`."""
    values = outcome.values
    if values.get("diff"):
        screen.heading("Diff")
        for coloured in diff_lines(str(values["diff"])):
            screen.line(coloured)
    screen.heading("Result")
    status = str(values.get("status") or "unknown")
    screen.line(
        f"  {one_line(status)}", "bold green" if status in {"passed", "already_green"} else "bold red"
    )
    if summary := str(values.get("summary") or ""):
        screen.indented(summary, "  ")
    return status
