"""Pieces of a repair as text: reports, plans and diffs."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table

from agent.cli.visible import Text, one_line
from agent.client import TestReport

_WIDE = 50  # columns; less leaves a table's columns a few letters each
_DIFF_STYLES = (
    ("+++", "bold"),
    ("---", "bold"),
    ("diff ", "bold"),
    ("@@", "cyan"),
    ("+", "green"),
    ("-", "red"),
)


def report_lines(report: TestReport) -> list[Text]:
    """Return a test report in a few lines: the verdict, then each failing test."""
    if report.timed_out:
        verdict = Text("  ✗ the tests did not end within their limit", "red")
    elif report.reason:
        verdict = Text(f"  ✗ {one_line(report.reason)}", "red")
    elif report.green:
        uncounted = "" if report.passed is not None else "exit code 0, tests not counted: "
        verdict = Text(f"  ✓ {uncounted}{_count(report.passed)}passed", "green")
    else:
        told = f"{_count(report.failed)}failed" if report.failed != 0 else f"exit code {report.exit_code}"
        if report.passed:
            told += f", {report.passed} passed"
        elif report.passed == 0 == report.failed:
            told += ", no test ran"
        elif report.failed is None and report.exit_code is not None:
            told += f", exit code {report.exit_code}"
        verdict = Text(f"  ✗ {told}", "red")
    return [verdict, *(Text(f"    {one_line(name)}", "red") for name in report.failing)]


def plan_table(plan: Mapping[str, Any], width: int = _WIDE) -> RenderableType:
    """Return a plan as a table: one row a step, the reason beneath the change.

    Args:
        plan: as the graph sent it.
        width: of the screen, in columns; on a narrow one it is a list, the texts beneath the file.
    """
    steps = plan.get("steps")
    rows = [
        (str(number), *(str(step.get(key, "")) for key in ("file", "change", "reason")))
        for number, step in enumerate(steps if isinstance(steps, Sequence) else (), start=1)
    ]
    return Padding(_plan_rows(rows) if width >= _WIDE else _plan_list(rows), (0, 0, 0, 2))


def _plan_rows(rows: Sequence[tuple[str, ...]]) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", leading=1)
    table.add_column("", justify="right", style="bold cyan")
    table.add_column("File", overflow="fold")
    table.add_column("Change and reason", overflow="fold")
    for number, file, change, reason in rows:
        table.add_row(number, Text(file), Text.assemble(change, "\n", (reason, "dim")))
    return table


def _plan_list(rows: Sequence[tuple[str, ...]]) -> RenderableType:
    shown: list[RenderableType] = []
    for number, file, change, reason in rows:
        margin = len(number) + 2
        text = Text(change, overflow="fold")
        if reason:
            text.append(f"\n{reason}", "dim")
        shown += [Text(), Text.assemble((number, "bold cyan"), "  ", one_line(file), overflow="fold")]
        shown.append(Padding(text, (0, 0, 0, margin)))
    return Group(*shown[1:])


def diff_lines(diff: str) -> list[Text]:
    """Return a unified diff, coloured."""
    return [Text(f"  {line}", _diff_style(line)) for line in diff.rstrip("\n").split("\n")]


def _diff_style(line: str) -> str:
    return next((style for start, style in _DIFF_STYLES if line.startswith(start)), "")


def _count(number: int | None) -> str:
    return "" if number is None else f"{number} "
