"""Sharing one piece of asynchronous work between callers who want the same thing at once."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Flights(Generic[T]):
    """Runs work once for all callers of one key, and goes on when callers are cancelled.

    When the last caller is cancelled the work still ends, and `abandoned` is awaited with what it made, so
    that nothing made is left to nobody. Keys hold only within one event loop.

    Args:
        abandoned: called with a result that no caller is left to take; its errors are its own to handle.
    """

    def __init__(self, abandoned: Callable[[T], Awaitable[None]]) -> None:
        self._abandoned = abandoned
        self._tasks: dict[tuple[int, str], asyncio.Task[T]] = {}
        self._callers: dict[asyncio.Task[T], int] = {}
        self._endings: set[asyncio.Task[None]] = set()

    async def share(self, key: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what `work` returns, starting it unless it is under way for this key."""
        place = (id(asyncio.get_running_loop()), key)
        task = self._tasks.get(place)
        if task is None:
            task = self._tasks[place] = asyncio.create_task(work())
            self._callers[task] = 0
            task.add_done_callback(lambda _: self._tasks.pop(place, None))
        self._callers[task] += 1
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._callers[task] == 1 and not task.cancelled():
                task.add_done_callback(self._end)
            raise
        finally:
            self._callers[task] -= 1
            if not self._callers[task]:
                del self._callers[task]

    def _end(self, task: asyncio.Task[T]) -> None:
        if task.cancelled() or task.exception() is not None:
            return
        ending = asyncio.create_task(_awaited(self._abandoned(task.result())))
        # The loop holds tasks weakly; without a reference the ending could be collected before it ran.
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)


async def _awaited(work: Awaitable[None]) -> None:
    await work
