"""What a rule may ask about, and what it answers."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

HUMAN = "human"
ANY_TOOL = "*"


@dataclass(frozen=True)
class Conversation:
    """What a rule may ask about; results and calls are those since the last message of the human."""

    human: str = ""
    system: str = ""
    tools: frozenset[str] = frozenset()
    results: tuple[tuple[str, str], ...] = ()
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def newest(self) -> str:
        """Whose message is the newest: the human's or a tool's."""
        return self.results[-1][0] if self.results else HUMAN

    def result(self, tool: str) -> str | None:
        """Return the text of a tool's latest result, or None if there is none."""
        return next((text for name, text in reversed(self.results) if tool in (name, ANY_TOOL)), None)


@dataclass(frozen=True)
class Answer:
    """What the model says, and the tools it calls with which arguments."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
