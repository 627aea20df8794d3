"""Both output streams of one call: passed on piece by piece, kept in measure."""

import secrets
from typing import Literal

from e2b_code_interpreter.models import OutputMessage

from agent.sandbox.output import Reception
from agent.sandbox.provider import OUTPUT_FOLDER, OutputHandler, Spooled

MIN_PASSED_BYTES = 131_072
SLACK = 4
"""How many times what is shown is passed on: colours and progress bars are taken out only here."""
SPOOLED_FROM = 16
"""The part of what is shown from which on a stream is kept in a file: several share one message."""


class Streams:
    """What one command or cell prints.

    Args:
        name: the files' name without their ends.
        shown_bytes: how much the caller shows of all of it.
        handler: called with each piece.
    """

    def __init__(self, name: str, shown_bytes: int, handler: OutputHandler | None) -> None:
        self.base = f"{OUTPUT_FOLDER}/{name}"
        self.nonce = secrets.token_hex(8)
        self.passed_bytes = max(MIN_PASSED_BYTES, SLACK * shown_bytes)
        self.spooled_from = shown_bytes // SPOOLED_FROM
        self._taken = {"stdout": 0, "stderr": 0}
        self._handler = handler
        # The sandbox passes on at most `passed_bytes`, unless it has no Python to bound it with.
        self._received = {
            name: Reception(self.nonce, f"{self.base}.{name}", 2 * self.passed_bytes)
            for name in ("stdout", "stderr")
        }

    async def _take(self, stream: Literal["stdout", "stderr"], piece: str) -> None:
        self._taken[stream] += len(piece)
        shown = self._received[stream].add(piece)
        if shown and self._handler:
            await self._handler(stream, shown)

    async def stdout(self, piece: str) -> None:
        """Take in what a command printed."""
        await self._take("stdout", piece)

    async def stderr(self, piece: str) -> None:
        """Take in what a command printed as errors."""
        await self._take("stderr", piece)

    async def stdout_message(self, message: OutputMessage) -> None:
        """Take in what a cell printed."""
        await self._take("stdout", message.line)

    async def stderr_message(self, message: OutputMessage) -> None:
        """Take in what a cell printed as errors."""
        await self._take("stderr", message.line)

    @property
    def any(self) -> bool:
        """Whether anything was printed."""
        return any(self._taken.values())

    @property
    def full(self) -> bool:
        """Whether so much was printed that there may be more than was passed on; counted in characters."""
        return max(self._taken.values()) >= self.passed_bytes // 8

    def read(self, name: str, text: str) -> tuple[str, Spooled | None]:
        """Return one form of a result without the mark, and where the whole is if there was one."""
        # What holds a mark is never longer than what is passed on, and the mark itself.
        if "\x1e" not in text or len(text) > 2 * self.passed_bytes:
            return text, None
        received = Reception(self.nonce, f"{self.base}.{name}", len(text) + 2)
        received.add(text)
        return received.end()

    def excerpt(self, text: str) -> str:
        """Return what an exception says, which may hold a mark in place of each of several parts."""
        if "\x1e" not in text:
            return text
        received = Reception(self.nonce, self.base, 2 * len(text) + 2)
        received.add(text)
        return received.excerpt()

    def end(self) -> tuple[str, str, dict[str, Spooled]]:
        """Return both texts, and where the whole is of those that are kept whole."""
        ends = {name: received.end() for name, received in self._received.items()}
        spooled = {name: file for name, (_, file) in ends.items() if file}
        return ends["stdout"][0], ends["stderr"][0], spooled
