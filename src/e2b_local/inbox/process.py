"""One process started through the SDK: its events, those who listen, its time limit and its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess

from .wire import Message

# A subscriber this many pieces behind holds the process back, as a full pipe would.
_QUEUE_PIECES = 64


class Subscription:
    """One stream of a process's events; closing it never loses or blocks the process."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUE_PIECES)
        self._closed = False

    async def put(self, event: bytes | None) -> None:
        """Add an event; None ends the stream."""
        if not self._closed:
            await self._queue.put(event)

    async def get(self) -> bytes | None:
        """Return the next event, or None after the last."""
        return await self._queue.get()

    def cut(self) -> None:
        """End the stream now; of a full queue the last piece makes way for the end."""
        self._closed = True
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(None)

    def close(self) -> None:
        """Stop taking events and let go of a process that waits to put one."""
        self._closed = True
        while not self._queue.empty():
            self._queue.get_nowait()


class Process:
    """A running or finished process."""

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        status: asyncio.Future[int],
        config: Message,
        tag: str | None,
        pty: int | None,
    ) -> None:
        self.pid = popen.pid
        self.status = status
        self.config = config
        self.tag = tag
        self.pty = pty
        self.stdin: asyncio.StreamWriter | None = None
        self.end: bytes | None = None
        self.expired = False
        self.left_s: float | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self.subscriptions: set[Subscription] = set()
        self._popen = popen

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Signal the process and all it started in its session's group."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            # A terminal's process makes its group just after its start, and has started nothing before.
            if self.end is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)
        except PermissionError:
            pass

    def start_clock(self) -> None:
        """Let the time that is left run, if there is a limit."""
        if self.left_s is not None:
            self._expiry = asyncio.get_running_loop().call_later(self.left_s, self.expire)

    def stop_clock(self) -> None:
        """Keep the time that is left, as a paused machine's clock does."""
        if self._expiry is not None:
            self.left_s = max(0.0, self._expiry.when() - asyncio.get_running_loop().time())
            self._expiry.cancel()
            self._expiry = None

    def expire(self) -> None:
        """Kill the process, its time being over; end its streams even if something keeps its pipes open."""
        self.expired = True
        self.kill()
        for subscription in self.subscriptions:
            subscription.cut()

    async def publish(self, event: bytes) -> None:
        """Give an event to every subscriber."""
        for subscription in list(self.subscriptions):
            await subscription.put(event)

    async def finish(self, status: int) -> None:
        """Record how the process ended and end every stream."""
        self._popen.returncode = os.waitstatus_to_exitcode(status)
        self.end = as_json({"end": end_event(status)})
        await self.publish(self.end)
        for subscription in list(self.subscriptions):
            await subscription.put(None)
        if self.stdin is not None:
            self.stdin.close()
        if self.pty is not None:
            os.close(self.pty)
            self.pty = None


def end_event(status: int) -> Message:
    """Return the end event for a wait status, worded as Go's ProcessState is."""
    if os.WIFEXITED(status):
        code = os.WEXITSTATUS(status)
        event: Message = {"exitCode": code, "exited": True, "status": f"exit status {code}"}
        return event | ({"error": event["status"]} if code else {})
    text = f"signal: {(signal.strsignal(os.WTERMSIG(status)) or 'unknown').lower()}"
    if os.WCOREDUMP(status):
        text += " (core dumped)"
    return {"exitCode": -1, "exited": False, "status": text, "error": text}


def as_json(event: Message) -> bytes:
    """Return an event as the SDK reads it."""
    return json.dumps({"event": event}).encode()
