"""Start the agent: `python -m inbox --listen-fd N --home DIR --run DIR`."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys

from .agent import Agent
from .archive import Kept
from .family import adopt_orphans, signal_all
from .limits import OomScore, limit_processes
from .memory import MemoryWatch
from .paths import Paths

_MB = 1024 * 1024


async def _run(arguments: argparse.Namespace, score: OomScore) -> None:
    loop = asyncio.get_running_loop()
    listener = socket.socket(fileno=arguments.listen_fd)
    os.set_inheritable(listener.fileno(), False)
    listener.setblocking(False)
    over = asyncio.Event()
    # Process 1 ignores what it has no handler for; Ctrl-C and TERM sent from inside must stay without effect.
    if os.getpid() == 1:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        loop.add_signal_handler(signal.SIGTERM, over.set)
    memory = MemoryWatch(arguments.memory_mb * _MB, lazy=arguments.lazy_watch)
    kept = Kept(arguments.keep) if arguments.keep else None
    agent = Agent(Paths(arguments.home), arguments.run, arguments.cpu_s, memory.stir, score, kept)
    server = await asyncio.start_unix_server(agent.serve, sock=listener, limit=1024 * 1024)
    # Standard input is the server's end of a pipe: when it closes, the server is gone.
    lifeline = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lifeline), sys.stdin)
    print("ready", flush=True)  # noqa: T201 - the server reads it
    stopped = asyncio.create_task(over.wait())
    closed = asyncio.create_task(lifeline.read(1))
    watch = asyncio.create_task(memory.run()) if arguments.memory_mb else None
    await asyncio.wait({stopped, closed}, return_when=asyncio.FIRST_COMPLETED)
    if watch is not None:
        watch.cancel()
    server.close()
    signal_all(signal.SIGKILL)
    os._exit(0)


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen-fd", type=int, required=True)
    parser.add_argument("--home", required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--keep", action="append", default=[])
    parser.add_argument("--memory-mb", type=int, default=0)
    parser.add_argument("--lazy-watch", action="store_true")
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--cpu-s", type=int, default=0)
    arguments = parser.parse_args()
    score = OomScore()
    adopt_orphans()
    if arguments.processes:
        limit_processes(memory_bytes=arguments.memory_mb * _MB, processes=arguments.processes)
    asyncio.run(_run(arguments, score))


if __name__ == "__main__":
    _main()
