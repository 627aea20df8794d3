"""Runs a command line and passes its output on in measure.

What the command leaves running in the background does not hold its result back: this program then goes on
without the caller, writing what they print to the files, for they would die of a closed pipe.
"""

from __future__ import annotations

# Not `signal`, which takes as long to import as all the rest of this program.
import _signal  # type: ignore[import-not-found]
import os
import select
import sys
import time

from agent.sandbox.e2b.inside.spool import Stream, named

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than this program runs
    from collections.abc import Callable

READ_BYTES = 65536
GRACE_S = 0.1
"""Of silence after the command's end before something in its background is thought to hold the pipes."""
PATIENCE_S = 1.0
"""The same where the background never falls silent."""


def main(command: str, base: str, nonce: str, pass_bytes: str, spool_from: str) -> None:
    """Run the command to its end and exit as it did; 128 more than the signal's number where one ended it."""
    named()
    streams = {}
    writers = []
    for number, name in ((1, "stdout"), (2, "stderr")):
        reader, writer = os.pipe()
        streams[reader] = Stream(
            base + "." + name,
            nonce,
            int(pass_bytes),
            int(spool_from),
            to(number),
        )
        writers.append(writer)
    child = os.fork()
    if not child:
        # Python ignores this signal, and what is ignored stays so in every program the command starts.
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(writers[0], 1)
        os.dup2(writers[1], 2)
        os.execvp("bash", ["bash", "-c", command])
    for writer in writers:
        os.close(writer)
    everything = dict(streams)
    status = pump(streams, child)
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    for reader, stream in everything.items():
        stream.finish(goes_on=reader in streams)
    if streams and not os.fork():
        go_on(streams)
    os._exit(code)


def pump(streams: dict[int, Stream], child: int) -> int:
    """Pass output on until the command has ended; streams that are at their end leave the dictionary."""
    try:
        ended = os.pidfd_open(child)
    except (AttributeError, OSError):
        ended = -1
    status = None
    latest = 0.0
    while streams or status is None:
        waits = [*streams, ended] if status is None and ended >= 0 else [*streams]
        patience = GRACE_S if status is not None else None if ended >= 0 else 0.05
        ready = select.select(waits, [], [], patience)[0]
        if status is None and (ended < 0 or ended in ready):
            pid, said = os.waitpid(child, os.WNOHANG)
            if pid:
                status, latest = said, time.monotonic() + PATIENCE_S
        elif status is not None and (not ready or time.monotonic() > latest):
            break
        for reader in ready:
            if reader in streams:
                take(streams, reader)
    return status


def take(streams: dict[int, Stream], reader: int) -> None:
    """Read once."""
    data = os.read(reader, READ_BYTES)
    if data:
        streams[reader].take(data)
    else:
        os.close(reader)
        del streams[reader]


def go_on(streams: dict[int, Stream]) -> None:
    """Write to the files what is still printed in the background, with no tie to the caller left."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    while streams:
        for reader in select.select([*streams], [], [])[0]:
            take(streams, reader)


def to(number: int) -> Callable[[bytes], None]:
    """Return what writes to a descriptor."""
    return lambda data: write(number, data)


def write(number: int, data: bytes) -> None:
    """Write all of it; a caller who is gone is no reason to stop the command."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(number, rest) :]
    except OSError:
        pass


if __name__ == "__main__":
    main(os.environ.pop("AGENT_LINE"), *sys.argv[1:])
