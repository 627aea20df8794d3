"""What a script sees of a conversation, and what it answers."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

HUMAN = "human"


@dataclass(frozen=True)
class Conversation:
    """What a script sees; results and calls are those since the last message of the human."""

    human: str = ""
    system: str = ""
    tools: frozenset[str] = frozenset()
    results: tuple[tuple[str, str], ...] = ()
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def newest(self) -> str:
        """Whose message is the newest: the human's or a tool's, by its name."""
        return self.results[-1][0] if self.results else HUMAN

    @property
    def result(self) -> str:
        """The text of the newest result; empty if there is none."""
        return self.results[-1][1] if self.results else ""


@dataclass(frozen=True)
class Answer:
    """What the model says, and the tools it calls with which arguments."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()

    @classmethod
    def call(cls, tool: str, /, text: str = "", **arguments: Any) -> "Answer":
        """Return an answer that calls one tool."""
        return cls(text, ((tool, arguments),))


Script = Callable[[Conversation], Iterable[Answer]]
"""Returns the answers it can think of, the best one first; the first whose tools are on offer is given."""


def search(pattern: str, text: str) -> re.Match[str] | None:
    """Search a text; `^` and `$` match at each line."""
    return re.search(pattern, text, re.MULTILINE)
