"""Turns of calls that must not overtake each other, such as the cells of one message."""

import asyncio
import weakref
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

ARRIVAL_S = 0.5
"""How long an earlier call is waited for that has not come yet: it may have run before an interruption."""
_REMEMBERED = 256


class Turns:
    """Lets calls run one at a time, each after those it is told to come after.

    Kept beside a sandbox, not in a module: calls of different sandboxes know nothing of each other. Order
    holds within one event loop, which is where the calls of one message run.
    """

    def __init__(self) -> None:
        self._lines: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = weakref.WeakKeyDictionary()

    @asynccontextmanager
    async def turn(self, call_id: str, after: Sequence[str] = ()) -> AsyncIterator[None]:
        """Wait for the call's turn and hold it; given up in any case, also when cancelled while waiting.

        Args:
            call_id: of the call.
            after: the calls of the same message that come before it. One that does not arrive is not waited
                for long: after an interruption only the interrupted calls run again.
        """
        line = self._lines.setdefault(asyncio.get_running_loop(), _Line())
        line.arrive(call_id)
        try:
            for earlier in after:
                await line.gone(earlier)
            async with line.lock:
                yield
        finally:
            line.leave(call_id)


class _Line:
    """The calls of one event loop."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self._arrivals: dict[str, asyncio.Event] = {}
        self._ends: dict[str, asyncio.Event] = {}

    def arrive(self, call_id: str) -> None:
        self._event(self._arrivals, call_id).set()
        self._event(self._ends, call_id).clear()

    def leave(self, call_id: str) -> None:
        self._event(self._ends, call_id).set()

    async def gone(self, call_id: str) -> None:
        try:
            async with asyncio.timeout(ARRIVAL_S):
                await self._event(self._arrivals, call_id).wait()
        except TimeoutError:
            return
        await self._event(self._ends, call_id).wait()

    @staticmethod
    def _event(events: dict[str, asyncio.Event], call_id: str) -> asyncio.Event:
        event = events.setdefault(call_id, asyncio.Event())
        while len(events) > _REMEMBERED:
            del events[next(iter(events))]
        return event
