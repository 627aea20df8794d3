"""Starts commands that run on by themselves, and tells how they are doing."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import json
import os
import sys
import time

from agent.sandbox.e2b.inside.calls import answer
from agent.sandbox.e2b.inside.spool import Stream, named, opened

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than this program runs
    from typing import Any

STREAMS = ("stdout", "stderr")
NOTE_CHARS = 10_000
NOTED = {
    "started": (int, float),
    "ended": (int, float),
    "watcher": (int,),
    "exit_code": (int,),
    "stopped": (bool,),
}
"""What a note tells, and the types of that."""


def start(base: str, command: str) -> dict[str, Any]:
    """Start a command that writes to files; a process of ours waits for its end and notes how it was."""
    outputs = [opened(base + "." + name) for name in STREAMS]
    note(base, {"started": time.time()})
    if os.fork():
        return {}
    os.setsid()
    named()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    child = os.fork()
    if not child:
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        os.execvp("bash", ["bash", "-c", command])
    note(base, {"started": time.time(), "watcher": os.getpid()})
    status = os.waitpid(child, 0)[1]
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    note(base, {**noted(base), "exit_code": code, "ended": time.time()})
    os._exit(0)


def poll(base: str, nonce: str, wait_s: float, pass_bytes: int, stopped: bool = False) -> dict[str, Any]:
    """Return what was printed since the last time, and whether the command has ended, for which it waits."""
    deadline = time.monotonic() + wait_s
    while running(said := noted(base)) and time.monotonic() < deadline:
        time.sleep(0.05)
    if stopped and "exit_code" not in said:
        said = {**said, "stopped": True, "ended": time.time()}
        note(base, said)
    result = {
        "exit_code": said["exit_code"] if 0 <= said.get("exit_code", -1) < 256 else None,
        "running": running(said),
        "stopped": said.get("stopped", False),
        "duration_s": said.get("ended", time.time()) - said["started"],
    }
    for name in STREAMS:
        result[name] = news(base + "." + name, nonce, pass_bytes)
    result["bytes"] = {name: os.stat(base + "." + name).st_size for name in STREAMS}
    return result


def news(path: str, nonce: str, pass_bytes: int) -> str:
    """Return what was added to a file since the last time, head and tail of it."""
    passed: list[bytes] = []
    stream = Stream(path, nonce, pass_bytes, sys.maxsize, passed.append)
    try:
        with open(path + ".at") as file:
            at = max(int(file.read(18)), 0)
    except (OSError, ValueError):
        at = 0
    with open(path, "rb") as file:
        file.seek(at)
        while data := file.read(1 << 16):
            stream.take(data)
    stream.finish()
    with open(path + ".at", "w") as file:
        file.write(str(at + stream.total))
    return b"".join(passed).decode("utf-8", "replace")


def running(said: dict[str, Any]) -> bool:
    """Whether the command runs, as far as notes and processes tell."""
    if "exit_code" in said or "ended" in said or said.get("stopped"):
        return False
    try:
        if "watcher" in said:
            os.kill(said["watcher"], 0)
    except (OSError, OverflowError):
        return False
    return True


def noted(base: str) -> dict[str, Any]:
    """Return the note on a command; what the command itself may have put there counts as not known."""
    with open(base + ".json") as file:
        text = file.read(NOTE_CHARS)
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = {}
    kept: dict[str, Any] = {}
    for name, kinds in NOTED.items():
        value = said.get(name) if isinstance(said, dict) else None
        if isinstance(value, (int, float)) and type(value) in kinds and abs(value) < 1e11:
            kept[name] = value
    now = time.time()
    return kept if "started" in kept else {"started": now, "ended": now}


def note(base: str, said: dict[str, Any]) -> None:
    """Replace the note on a command."""
    with open(base + ".json.new", "w") as file:
        json.dump(said, file)
    os.replace(base + ".json.new", base + ".json")


if __name__ == "__main__":
    answer({"start": start, "poll": poll})
