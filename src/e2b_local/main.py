"""The command line: `e2b-local serve`, `list` and `kill`."""

from __future__ import annotations

import argparse
import asyncio
import io
import logging
import re
import secrets
import sys
from collections.abc import Callable

from e2b_local.client import AskError, kill_sandboxes, list_sandboxes
from e2b_local.config import LOOPBACK, Config, Limits
from e2b_local.state import StateDir, clear_left_behind


def main() -> None:
    """Run the command line."""
    arguments = _parser().parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # metadata may hold what this terminal's encoding has not
    match arguments.command:
        case "serve":
            code = _serve(arguments)
        case "list":
            code = _ask(list_sandboxes)
        case _:
            code = _ask(lambda: kill_sandboxes(arguments.sandbox, everything=arguments.all))
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="e2b-local", description="E2B sandboxes on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser(
        "serve",
        help="run the server",
        description="Run the server; once ready it prints the three variables that point the E2B SDK at it.",
    )
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    serve.add_argument(
        "--port", type=int, default=0, help="port to listen on; 0, the default, takes a free one"
    )
    serve.add_argument(
        "--domain",
        type=_domain,
        default="localhost",
        help="domain whose names PORT-ID.DOMAIN lead to this server (default localhost)",
    )
    serve.add_argument("--api-key", help="key that clients must send (default: a random one at each start)")
    serve.add_argument(
        "--no-isolation",
        action="store_true",
        help="run sandboxes as plain processes: only for code you trust",
    )
    serve.add_argument(
        "--pool", type=int, default=1, metavar="N", help="warm sandboxes kept ready (default 1; 0 for none)"
    )
    serve.add_argument("--max-running", type=int, metavar="N", help="most sandboxes that may run at once")
    defaults = Limits()
    serve.add_argument(
        "--memory-mb", type=int, default=defaults.memory_mb, help="memory of a sandbox (default %(default)s)"
    )
    serve.add_argument(
        "--disk-mb",
        type=int,
        default=defaults.disk_mb,
        help="size of a sandbox's /home and of its /tmp, which are kept in memory (default %(default)s)",
    )
    serve.add_argument(
        "--processes",
        type=int,
        default=defaults.processes,
        help="processes and threads of a sandbox (default %(default)s)",
    )
    serve.add_argument(
        "--cpu-s",
        type=int,
        default=defaults.cpu_s,
        help="CPU seconds of each process of a sandbox, 0 for no limit (default %(default)s)",
    )
    serve.add_argument(
        "--env",
        type=_variable,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable that every sandbox has, as a template may set it; can be repeated",
    )
    serve.add_argument("--verbose", action="store_true", help="log more")
    commands.add_parser(
        "list",
        help="list the sandboxes of a running server",
        description="List the sandboxes of the server that E2B_API_URL and E2B_API_KEY name.",
    )
    kill = commands.add_parser(
        "kill",
        help="kill sandboxes of a running server",
        description="Kill sandboxes of the server that E2B_API_URL and E2B_API_KEY name.",
    )
    which = kill.add_mutually_exclusive_group(required=True)
    which.add_argument("sandbox", nargs="*", default=[], help="ids of the sandboxes to kill")
    which.add_argument("--all", action="store_true", help="kill all of them")
    return parser


def _domain(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)*", text.lower()):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no name of a domain: give it without port and wildcard"
        )
    return text.lower()


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _serve(arguments: argparse.Namespace) -> int:
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if arguments.verbose else logging.INFO,
        format="%(asctime)s e2b-local: %(message)s",
        datefmt="%H:%M:%S",
    )
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    logging.getLogger("python_multipart").setLevel(logging.WARNING)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    if arguments.host not in LOOPBACK and not arguments.api_key:
        return _refuse("listening beyond loopback needs a key of your own: pass --api-key")
    try:
        from e2b_local.server import StartError, serve
    except ModuleNotFoundError as exc:
        return _refuse(
            f"serve needs the extra `local` ({exc.name} is missing): pip install 'langgraph-e2b-agent[local]'"
        )

    clear_left_behind()
    state = StateDir()
    config = Config(
        host=arguments.host,
        port=arguments.port,
        api_key=arguments.api_key or f"e2b_{secrets.token_hex(20)}",
        isolation=not arguments.no_isolation,
        pool_size=max(0, arguments.pool),
        state_dir=state.path,
        limits=Limits(
            memory_mb=arguments.memory_mb,
            disk_mb=arguments.disk_mb,
            processes=arguments.processes,
            cpu_s=arguments.cpu_s,
        ),
        max_running=arguments.max_running,
        variables=dict(arguments.env),
        domain=arguments.domain,
    )
    try:
        asyncio.run(serve(config))
    except StartError as exc:
        return _refuse(str(exc))
    finally:
        state.remove()
    return 0


def _is_news(record: logging.LogRecord) -> bool:
    # Dropping a connection in mid-stream tells clients that a sandbox died; uvicorn calls it an error. That
    # there are no web sockets is meant so.
    noise = ("without completing", "Unsupported upgrade", "No supported WebSocket")
    return not any(each in record.getMessage() for each in noise)


def _ask(command: Callable[[], int]) -> int:
    try:
        return command()
    except AskError as exc:
        return _refuse(str(exc))


def _refuse(why: str) -> int:
    print(f"e2b-local: {why}", file=sys.stderr)  # noqa: T201
    return 1


if __name__ == "__main__":
    main()
