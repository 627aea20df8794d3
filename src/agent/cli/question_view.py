"""How a question looks: all that is asked about, as it would be carried out, or of a long one its ends.

What is long would push its own beginning off the screen, and a human would approve what they have not seen:
so a long text says how long it is, and its first and last lines are shown. Lines of ours about a text stand
further out than the text, which cannot begin there.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from agent.cli.editing import as_yaml
from agent.cli.questions import Action, actions
from agent.cli.repair_text import plan_table
from agent.cli.screen import Screen
from agent.cli.visible import code, cut, one_line

_LANGUAGES = {"code": "python", "command": "bash"}

_MOST_LINES = 60
_LONGEST_TEXT = 4000  # characters; about a screen and a half
_SHOWN_LINES = 15  # of each end of a long text
_LONGEST_LINE = 240  # of a long text
_LONGEST_VALUE = 200  # beside its name; longer ones stand beneath it
_MOST_BLANK_LINES = 3
_GAP = re.compile(r"[^\S\n]{60,}")  # blanks that push what follows off the line
_MOST_ARGUMENTS = 20
_MOST_STEPS = 20
_LONGEST_CELL = 1500


def show_question(screen: Screen, value: Any, *, whole: bool = False) -> list[bool]:
    """Show what is asked: a plan as a table, code and commands as such, anything else as it came.

    Args:
        screen: where to write.
        value: the question's, as the graph sent it.
        whole: show all of it, however long.

    Returns:
        For each action whether some of it was left out.
    """
    asked_about = actions(value)
    if not asked_about:
        screen.heading("A question")
        _show_text(screen, _as_json(value), "  ", whole=whole)
        return []
    tried = value.get("iteration")
    again = f" (try {tried})" if isinstance(tried, int) and tried > 1 else ""
    calls = f" for {len(asked_about):,} calls" if len(asked_about) > 1 else ""
    plan = any(action.is_plan for action in asked_about)
    screen.heading("Plan" + again if plan else f"Approval needed{calls}")
    cuts = [show_action(screen, action, whole=whole) for action in asked_about]
    notice = value.get("notice")
    if notice:
        _show_text(screen, str(notice), "  ", "yellow", whole=whole)
    return cuts


def show_action(screen: Screen, action: Action, *, whole: bool = False) -> bool:
    """Show one action of a question; return whether some of it was left out."""
    if action.is_plan and not _is_long_plan(action):
        return _show_plan(screen, action, whole)
    screen.line(f"  {one_line(action.name)}", "cyan")
    if not action.args:
        return _show_text(screen, action.description, "    ", whole=whole)
    if action.is_plan or len(action.args) > _MOST_ARGUMENTS:
        return _show_text(screen, as_yaml(action.args), "    ", whole=whole)
    cuts = [_show_argument(screen, name, value, whole) for name, value in action.args.items()]
    return any(cuts)


def _show_plan(screen: Screen, action: Action, whole: bool) -> bool:
    left_out = False
    if summary := action.args.get("summary"):
        left_out = _show_text(screen, str(summary), "  ", whole=whole)
    screen.line()
    screen.show(plan_table(action.args, screen.console.width))
    screen.line()
    return left_out


def _is_long_plan(action: Action) -> bool:
    steps = action.args["steps"]
    cells = [str(text) for step in steps for text in step.values()]
    return len(steps) > _MOST_STEPS or any(_is_long(cell, _LONGEST_CELL) for cell in cells)


def _show_argument(screen: Screen, name: str, value: Any, whole: bool) -> bool:
    text = value if isinstance(value, str) else _as_json(value)
    if language := _LANGUAGES.get(name):
        if screen.is_terminal and (whole or not _is_long(text)):
            screen.show(code(text, language))
            return False
        return _show_text(screen, text, "    ", whole=whole)
    if "\n" not in text and len(text) <= _LONGEST_VALUE:
        screen.line(f"    {one_line(name)}: {_without_gaps(text, whole)}")
        return not whole and bool(_GAP.search(text))
    screen.line(f"    {one_line(name)}:")
    return _show_text(screen, text, "      ", whole=whole)


def _show_text(screen: Screen, text: str, margin: str, style: str = "", *, whole: bool) -> bool:
    """Write a text's lines, of a long one the ends; return whether some was left out."""
    if whole or not _is_long(text):
        screen.indented(text, margin, style)
        return False
    lines = text.removesuffix("\n").split("\n")
    ours = margin[2:]
    size = f"{len(lines):,} line{'s' if len(lines) != 1 else ''}, {len(text):,} characters"
    screen.line(f"{ours}… {size}; not all of it is shown", "yellow")
    pieces = _blanks_counted(lines)
    hidden = pieces[_SHOWN_LINES:-_SHOWN_LINES]
    if sum(count for count, _ in hidden) > 1:
        left = sum(count for count, _ in hidden)
        pieces = [*pieces[:_SHOWN_LINES], (left, None), *pieces[-_SHOWN_LINES:]]
    for count, line in pieces:
        if line is None:
            screen.line(f"{ours}… {count:,} lines are not shown", "yellow")
        elif count > 1:
            screen.line(f"{ours}… {count:,} blank lines", "yellow")
        else:
            screen.line(f"{margin}{cut(_without_gaps(line, whole), _LONGEST_LINE)}", style)
    return True


def _blanks_counted(lines: Sequence[str]) -> list[tuple[int, str | None]]:
    """Return each line with a 1, and the blank lines of a long run as one, with their number."""
    counted: list[tuple[int, str | None]] = []
    run = 0
    for line in [*lines, None]:
        if line is not None and not line.strip():
            run += 1
            continue
        counted += [(run, "")] if run > _MOST_BLANK_LINES else [(1, "")] * run
        run = 0
        if line is not None:
            counted.append((1, line))
    return counted


def _is_long(text: str, longest: int = _LONGEST_TEXT) -> bool:
    lines = text.split("\n")
    blank = any(count > 1 for count, _ in _blanks_counted(lines)) if len(lines) <= _MOST_LINES else False
    return len(lines) > _MOST_LINES or len(text) > longest or blank or bool(_GAP.search(text))


def _without_gaps(line: str, whole: bool) -> str:
    return line if whole else _GAP.sub(lambda gap: f" … {len(gap[0]):,} blanks … ", line)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
