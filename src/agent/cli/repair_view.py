"""How a repair looks on the screen: tests, plan, steps, diff."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agent.cli.screen import Busy, Screen
from agent.client import (
    Event,
    Failed,
    Progress,
    SandboxNotice,
    TestReport,
    Tests,
    Token,
    ToolEvent,
)

_MOST_OUTPUT_LINES = 12
_DIFF_STYLES = (
    ("+++", "bold"),
    ("---", "bold"),
    ("diff ", "bold"),
    ("@@", "cyan"),
    ("+", "green"),
    ("-", "red"),
)


class RepairView:
    """Shows the events of a `plan_execute` run as they come.

    Args:
        screen: where to write.
        verbose: also the tools' output, the model's words and the tests' whole output.
    """

    def __init__(self, screen: Screen, *, verbose: bool = False) -> None:
        self._screen = screen
        self._verbose = verbose
        self._busy: Busy | None = None
        self._step: tuple[int, int | None] | None = None
        self._words = ""
        self._message_id = ""

    def follow(self, busy: Busy | None) -> None:
        """Send what is going on now to a spinner, or to none."""
        self._busy = busy

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
                self._tool(event)
            case SandboxNotice():
                self._sandbox(event)
            case Failed():
                self._screen.error(
                    f"The run failed: {event.error + ': ' if event.error else ''}{event.message}"
                )
            case _:
                return

    def _progress(self, event: Progress) -> None:
        if self._busy is not None:
            done = None if event.step is None else event.step - 1
            self._busy.update(event.message, done, event.steps)
        if event.step is not None and (event.iteration, event.step) != self._step:
            self._step = (event.iteration, event.step)
            self._screen.line()
            of = f" of {event.steps}" if event.steps else ""
            self._screen.line(f"  Step {event.step}{of}  {_without_step(event)}", "bold")
        elif event.step is None:
            self._screen.line(f"  {event.message}", "dim")

    def _tests(self, event: Tests) -> None:
        for line in report_lines(event.report):
            self._screen.line(line)
        if self._verbose and event.report.output:
            self._block(event.report.output, most=200)

    def _tool(self, event: ToolEvent) -> None:
        if event.event == "start":
            self._screen.line(
                Text.assemble(("    › ", "cyan"), (event.name, "cyan"), f" {_arguments(event.text)}")
            )
        elif (event.event == "output" and self._verbose) or (event.event == "result" and self._verbose):
            self._block(event.text, most=_MOST_OUTPUT_LINES)

    def _sandbox(self, event: SandboxNotice) -> None:
        loss = event.event == "replaced"
        said = event.message or event.event
        self._screen.line(f"  sandbox {event.sandbox_id}: {said}", "yellow" if loss else "dim")

    def _token(self, event: Token) -> None:
        if event.message_id != self._message_id:
            self._end_of_words()
            self._message_id = event.message_id
        *lines, self._words = (self._words + event.text).split("\n")
        for line in lines:
            self._screen.line(f"    {line}", "italic")

    def _end_of_words(self) -> None:
        if self._words.strip():
            self._screen.line(f"    {self._words}", "italic")
        self._words = ""

    def _block(self, text: str, *, most: int) -> None:
        lines = text.rstrip("\n").splitlines()
        for line in lines[:most]:
            self._screen.line(f"      {line}", "dim")
        if len(lines) > most:
            self._screen.line(f"      … {len(lines) - most} more lines", "dim")


def report_lines(report: TestReport) -> list[Text]:
    """Return a test report in a few lines: the verdict, then each failing test."""
    if report.timed_out:
        verdict = Text("  ✗ the tests did not end within their limit", "red")
    elif report.green:
        verdict = Text(f"  ✓ {_count(report.passed)}passed", "green")
    else:
        told = f"{_count(report.failed)}failed"
        if report.passed:
            told += f", {report.passed} passed"
        verdict = Text(f"  ✗ {told}", "red")
    return [verdict, *(Text(f"    {name}", "red") for name in report.failing)]


def plan_table(plan: Mapping[str, Any]) -> RenderableType:
    """Return a plan as a table, one row a step."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    for column in ("#", "File", "Change", "Reason"):
        table.add_column(column, overflow="fold", ratio=None if column in "#File" else 1)
    steps = plan.get("steps")
    for number, step in enumerate(steps if isinstance(steps, Sequence) else (), start=1):
        table.add_row(str(number), *(Text(str(step.get(key, ""))) for key in ("file", "change", "reason")))
    return table


def diff_lines(diff: str) -> list[Text]:
    """Return a unified diff, coloured."""
    return [Text(f"  {line}", _diff_style(line)) for line in diff.splitlines()]


def _diff_style(line: str) -> str:
    return next((style for start, style in _DIFF_STYLES if line.startswith(start)), "")


def _count(number: int | None) -> str:
    return "" if number is None else f"{number} "


def _without_step(event: Progress) -> str:
    """Drop a leading `Step 1 of 2: ` from a message: the heading says it already."""
    head, separator, rest = event.message.partition(": ")
    return rest if separator and head.lower().startswith("step ") else event.message


def _arguments(text: str) -> str:
    """Return a tool's arguments in one short line: the first value, the rest by name."""
    try:
        arguments = json.loads(text)
    except ValueError:
        return text[:100]
    if not isinstance(arguments, Mapping) or not arguments:
        return ""
    first, *others = arguments.items()
    shown = str(first[1]).splitlines() or [""]
    more = " …" if len(shown) > 1 else ""
    rest = "".join(f", {name}: {len(str(value))} characters" for name, value in others)
    return f"{shown[0][:90]}{more}{rest}"
