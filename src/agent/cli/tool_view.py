"""How tool calls look on the screen: one line a call, its output beneath."""

import json
import re
from collections.abc import Mapping

from agent.cli.screen import Busy, Screen
from agent.cli.visible import Text, cut, one_line
from agent.client import ToolEvent

_MOST_RESULT_LINES = 12
_LONGEST_ARGUMENT = 90
_LONGEST_DIGEST = 500
_MOST_NAMED = 8
_LONGEST_PARTIAL = 100_000  # characters of a line whose end has not come
_MOST_CALLS = 1000  # that are remembered
_EXIT = re.compile(r"exit_code: (\d+)|timed out after .*|outcome unknown.*")
_BLOCK = re.compile(r"</?(stdout|stderr|result|error|file)\b[^>]*>")
_STDOUT = re.compile(
    r"<(stdout(?:-\d+)?)>\n(.*?)\n</\1>", re.DOTALL
)  # numbered where a text holds the plain tag


class ToolView:
    """Shows tool calls; output that arrives in pieces is shown by the line.

    Args:
        screen: where to write.
        verbose: also live output and whole results.
    """

    def __init__(self, screen: Screen, *, verbose: bool = False) -> None:
        self._screen = screen
        self._verbose = verbose
        self.busy: Busy | None = None
        self._partial: dict[str, str] = {}
        self._live: dict[str, None] = {}  # in the order of their first output

    def show(self, event: ToolEvent) -> None:
        """Show one event of a tool call."""
        match event.event:
            case "start":
                name = one_line(event.name)
                line = Text.assemble("    ", (name, "cyan"), " ", arguments_line(event.text))
                self._screen.line(line)
            case "output":
                self._output(event)
            case "heartbeat":
                if self.busy is not None:
                    self.busy.detail(f"{one_line(event.name)}, {event.elapsed_s} s")
            case "end":
                self._end(event)
            case "result":  # the same text as `end`, from the conversation
                return

    def _output(self, event: ToolEvent) -> None:
        self._live[event.tool_call_id] = None
        if len(self._live) > _MOST_CALLS:
            self._live.pop(next(iter(self._live)))
        *lines, rest = (self._partial.pop(event.tool_call_id, "") + event.text).split("\n")
        self._partial[event.tool_call_id] = rest[-_LONGEST_PARTIAL:]
        if len(self._partial) > _MOST_CALLS:  # such as of calls whose end was never told
            self._partial.pop(next(iter(self._partial)))
        for line in lines:
            if self._verbose:
                self._screen.line(f"      {line}", "dim")
        last = next((line for line in reversed([*lines, rest]) if line.strip()), "")
        if self.busy is not None and last:
            self.busy.detail(last.strip())

    def _end(self, event: ToolEvent) -> None:
        rest = self._partial.pop(event.tool_call_id, "")
        if self._verbose and rest:
            self._screen.line(f"      {rest}", "dim")
        if self._verbose and event.tool_call_id not in self._live:
            self._whole(event.text)
        else:
            self._digest(event.text)
        if self.busy is not None:
            self.busy.detail("")

    def _whole(self, text: str) -> None:
        lines = text.rstrip("\n").split("\n") if text.strip("\n") else []
        for line in lines[:_MOST_RESULT_LINES]:
            self._screen.line(f"      {line}", "dim")
        if len(lines) > _MOST_RESULT_LINES:
            self._screen.line(f"      … {len(lines) - _MOST_RESULT_LINES} more lines", "dim")

    def _digest(self, text: str) -> None:
        digest = cut(result_digest(text), _LONGEST_DIGEST)
        if digest:
            bad = text.startswith("error:") or (_EXIT.match(text) and not re.match(r"exit_code: 0\b", text))
            self._screen.line(f"      {digest}", "red" if bad else "dim")


def result_digest(text: str) -> str:
    """Return a tool's result in one line: how a command ended and its last line, or nothing to say."""
    text = text.rstrip("\n")
    lines = text.split("\n")
    if not text:
        return ""
    if not _EXIT.match(lines[0]):
        return lines[0] if len(lines) <= 2 and not lines[0].startswith("<") else ""
    stdout = _STDOUT.search(text)
    said = [line.strip() for line in (stdout[2].split("\n") if stdout else lines[1:])]
    last = next((line for line in reversed(said) if line and not _BLOCK.fullmatch(line)), "")
    return f"{lines[0]}  {last}".rstrip()


def arguments_line(text: str) -> str:
    """Return a tool's arguments in one short line: the first value, the rest by size."""
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return one_line(text[:_LONGEST_ARGUMENT])
    if not isinstance(arguments, Mapping) or not arguments:
        return ""
    first, *others = arguments.items()
    line, _, following = str(first[1]).partition("\n")
    more = " …" if following or len(line) > _LONGEST_ARGUMENT else ""
    rest = "".join(
        f", {one_line(name)}: {len(str(value))} characters" for name, value in others[:_MOST_NAMED]
    )
    left = f", {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    return f"{one_line(line[:_LONGEST_ARGUMENT])}{more}{rest}{left}"
