"""The operations the server may ask for, one connection each."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from .archive import Archive, Folders, Kept
from .contexts import Contexts
from .family import signal_all
from .files import Files
from .limits import OomScore
from .paths import Paths
from .processes import Processes
from .reaper import Reaper
from .relay import connect_port, network
from .usage import usage
from .watching import Watching
from .wire import CHUNK_BYTES, Channel, Message, OpError

Unary = Callable[[Message], Awaitable[Message]]
Streaming = Callable[[Message, Channel], Awaitable[Message]]


class Agent:
    """Answers operations: a request, then what the operation streams, then `{"ok": …}` or `{"error": …}`."""

    def __init__(
        self,
        paths: Paths,
        run_dir: str,
        cpu_s: int,
        stirred: Callable[[], None],
        score: OomScore,
        kept: Kept | None,
    ) -> None:
        """Take what a snapshot keeps; None, without isolation, for the home and the temporary folder."""
        self._environment = dict(os.environ)
        self._stirred = stirred
        self._contexts = Contexts(paths, run_dir, lambda: self._environment, cpu_s)
        reaper = Reaper()
        reaper.install()
        files = Files(paths)
        watching = Watching(paths)
        self._processes = processes = Processes(paths, reaper, lambda: self._environment, cpu_s, score)
        archive = Archive(kept or Folders([paths.home, os.environ.get("TMPDIR", "/tmp")]), reaper)
        self._unary: dict[str, Unary] = {
            "configure": self._configure,
            "freeze": self._freeze,
            "thaw": self._thaw,
            "network": network,
            "usage": usage,
            "stat": files.stat,
            "list": files.list_dir,
            "make_dir": files.make_dir,
            "move": files.move,
            "remove": files.remove,
            "watcher_create": watching.create,
            "watcher_fetch": watching.fetch,
            "watcher_remove": watching.remove,
            "process_list": processes.listing,
            "process_signal": processes.signal,
            "process_input": processes.input,
            "process_close_stdin": processes.close_stdin,
            "process_update": processes.update,
            "warm": self._contexts.warm,
            "contexts": self._contexts.listing,
            "context": self._contexts.find,
            "context_create": self._contexts.create,
            "context_delete": self._contexts.delete,
            "context_restart": self._contexts.restart,
        }
        self._streaming: dict[str, Streaming] = {
            "read": files.read,
            "write": files.write,
            "watch": watching.watch,
            "process_start": processes.start,
            "process_connect": processes.connect,
            "archive": archive.pack,
            "unpack": archive.unpack,
            "execute": self._contexts.execute,
            "connect_port": connect_port,
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the server."""
        channel = Channel(reader, writer)
        try:
            request = await channel.receive()
            if isinstance(request, dict):
                await channel.send(await self._answer(request, channel))
                # The server may still be sending: closing now would lose the answer on its side.
                writer.write_eof()
                while await reader.read(CHUNK_BYTES):
                    pass
        except (ConnectionError, OpError):
            pass  # the server hung up: what it asked for goes on or has ended as the operation defines
        finally:
            channel.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, request: Message, channel: Channel) -> dict[str, Any]:
        name = str(request.get("op"))
        try:
            if name in self._unary:
                return {"ok": await self._unary[name](request)}
            if name in self._streaming:
                self._stirred()
                return {"ok": await self._streaming[name](request, channel)}
            raise OpError("unimplemented", f"unknown operation {name}")
        except OpError as exc:
            return {"error": {"code": exc.code, "message": exc.message}}
        except ConnectionError:
            raise
        except RecursionError:
            return {"error": {"code": "invalid_argument", "message": "the folders are nested too deeply"}}
        except Exception as exc:
            traceback.print_exc()
            return {"error": {"code": "internal", "message": f"{type(exc).__name__}: {exc}"}}

    async def _configure(self, request: Message) -> Message:
        variables: dict[str, str] = request.get("envs") or {}
        self._environment.update(variables)
        self._contexts.update_environment(variables)
        return {}

    async def _freeze(self, request: Message) -> Message:
        self._processes.stop_clocks()
        signal_all(signal.SIGSTOP)
        return {}

    async def _thaw(self, request: Message) -> Message:
        signal_all(signal.SIGCONT)
        self._processes.start_clocks()
        return {}
