"""A screen for tests of the command line."""

import io

from agent.cli.screen import Screen
from agent.cli.visible import VisibleConsole


class TerminalFile(io.StringIO):
    """What a terminal was sent."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


class Sheet(Screen):
    """A screen without a terminal, on which answers are prepared."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self._file = io.StringIO()
        super().__init__(VisibleConsole(file=self._file), ask=True)

    def ask(self, question: str) -> str:
        """Give the next prepared answer; Ctrl-C when there is none left."""
        self.asked.append(question)
        if not self.answers:
            raise KeyboardInterrupt
        return self.answers.pop(0)

    @property
    def text(self) -> str:
        """Everything written so far."""
        return self._file.getvalue()
