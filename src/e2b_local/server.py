"""Running the server: its socket, its signals, its beginning and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Iterator

import uvicorn

from e2b_local.box import BoxStartError, Launcher
from e2b_local.bubblewrap import BubblewrapLauncher
from e2b_local.config import Config
from e2b_local.control import ControlPlane
from e2b_local.gateway import Gateway
from e2b_local.plain import PlainLauncher
from e2b_local.pool import Pool
from e2b_local.registry import Registry
from e2b_local.template import Template

_log = logging.getLogger(__name__)
_GRACE_S = 1
# The SDK keeps idle connections for 300 s. Were they closed here first, a request could meet the closing.
_KEEP_ALIVE_S = 600


class StartError(Exception):
    """The server cannot start; the message says what to do."""


class _Uvicorn(uvicorn.Server):
    """uvicorn that leaves signals to us and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self.over = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        # uvicorn's own looks ten times a second whether it should exit: an idle server should do nothing.
        await self.over.wait()


async def serve(config: Config) -> None:
    """Serve until SIGTERM or SIGINT; then end every sandbox and return.

    Raises:
        StartError: nothing was started.
    """
    listener = _bind(config)
    launcher, template = _launcher(config)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    pool = Pool(launcher, config.pool_size, template.warm)
    registry = Registry(config, pool)
    control = ControlPlane(config, registry, f"{config.domain}:{port}")
    server = _Uvicorn(
        uvicorn.Config(
            Gateway(registry, control, config.domain),
            lifespan="off",
            # There are none: a request for one is answered as the plain request that it also is.
            ws="none",
            access_log=False,
            date_header=False,
            server_header=False,
            log_config=None,
            timeout_keep_alive=_KEEP_ALIVE_S,
            # Sandboxes are ended first, which ends their streams; what still hangs then is cut off.
            timeout_graceful_shutdown=_GRACE_S,
            loop="asyncio",
        )
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        await server.listening.wait()
        print(f"E2B_API_URL=http://{shown}:{port}")  # noqa: T201 - a parent process reads these lines
        print(f"E2B_SANDBOX_URL=http://{shown}:{port}")  # noqa: T201
        print(f"E2B_API_KEY={config.api_key}", flush=True)  # noqa: T201
        _log.info("listening on %s:%d", host, port)
        pool.start()
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        _log.info("stopping")
        server.should_exit = True
        server.over.set()
        await registry.close()
        await serving


def _bind(config: Config) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # asyncio turns Nagle's delay off only where the protocol is named; 40 ms a request otherwise.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host, config.port))
    except OSError as exc:
        raise StartError(f"cannot listen on {config.host}:{config.port}: {exc.strerror}") from exc
    return listener


def _launcher(config: Config) -> tuple[Launcher, Template]:
    template = Template.of_this_python(config.state_dir / "matplotlib", config.variables)
    if not config.isolation:
        print(  # noqa: T201
            "e2b-local: NO ISOLATION: code in a sandbox can read and change all that you can, "
            "and reach your network.",
            file=sys.stderr,
            flush=True,
        )
        return PlainLauncher(template, config.state_dir), template
    launcher = BubblewrapLauncher(template, config.state_dir, config.limits)
    try:
        launcher.prepare()
    except BoxStartError as exc:
        raise StartError(
            f"{exc}: apt-get install bubblewrap, or pass --no-isolation to run sandboxes as plain processes"
        ) from exc
    return launcher, template
