"""How a command begins and ends: signals, settings, a connection, an exit code."""

import re
import signal
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import typer

from agent.cli import exits, output
from agent.cli.visible import VisibleConsole, visible

if TYPE_CHECKING:
    from agent.cli.screen import Screen
    from agent.cli.session import Session
    from agent.client import ClientError


_TOKEN = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)  # RFC 9110, 5.6.2


class Terminated(KeyboardInterrupt):
    """The process was asked to end; takes the way of Ctrl-C, so that everything is cleaned up."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"signal {signum}")
        self.signum = signum


def _terminate(signum: int, frame: object) -> NoReturn:
    raise Terminated(signum)


def guarded(work: Callable[[], int]) -> NoReturn:
    """Run a command's work and leave with its exit code, also on Ctrl-C, SIGTERM and wrong settings.

    A standard output that cannot be written ends it, too.
    """
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _terminate)
    output.watch()
    with output.visible_errors():
        try:
            code = _worked(work)
            output.flush()
        except output.OutputError as exc:
            code = output.give_up(exc)
    raise typer.Exit(code)


def _worked(work: Callable[[], int]) -> int:
    from agent.errors import SettingsError

    try:
        return work()
    except Terminated as exc:
        return 128 + exc.signum
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except SettingsError as exc:
        typer.echo(str(exc), err=True)
        return exits.USAGE
    except typer.BadParameter as exc:  # typer writes it itself, and it may name a file of a folder
        exc.message = visible(exc.message)
        raise
    except (typer.Exit, output.OutputError):
        raise
    except Exception:
        # Here, since the interpreter would write it to the terminal as it is, and end with 1: "failed".
        traceback.print_exc()
        typer.echo("This is a defect of sandbox-agent; please report it.", err=True)
        return exits.PLATFORM


def connected(
    work: "Callable[[Screen, Session], int]",
    server: str | None,
    header: list[str] | None,
    *,
    json: bool = False,
) -> NoReturn:
    """Run a command's work on a connection to a server, and leave with its exit code."""
    headers = headers_of(header or [])

    def connect() -> int:
        from agent.cli.project import settings_here
        from agent.cli.session import Session
        from agent.client import ClientError

        screen = screen_for(json=json)
        with Session.to(settings_here(server), server, headers) as session:
            try:
                return work(screen, session)
            except ClientError as exc:
                screen.error(told(exc))
                if json:
                    from agent.cli.jsonl import JsonView

                    JsonView().error(exc)
                if words := hint(exc):
                    screen.line(words)
                return exits.PLATFORM

    guarded(connect)


def told(exc: "ClientError") -> str:
    """Return an error as a user reads it, who has seen the question that is answered, and not its id."""
    from agent.client import StaleAnswerError

    if not isinstance(exc, StaleAnswerError):
        return str(exc)
    rest = "Another question waits." if exc.open_now else exc.next_step
    return f"The question was answered elsewhere meanwhile; your answer was not sent ({exc.where}). {rest}"


def hint(exc: "ClientError") -> str:
    """Return what to type next after an error, where a command of ours helps."""
    from agent.client import (
        BusyError,
        NotFoundError,
        RefusedError,
        StaleAnswerError,
        StreamLostError,
        UnreachableError,
    )

    thread = exc.where.thread_id
    match exc:
        case BusyError() if thread:
            return (
                f"`sandbox-agent resume {thread}` watches that run, `sandbox-agent cancel {thread}` stops it."
            )
        case StaleAnswerError(open_now=(_, *_)) if thread:
            return f"`sandbox-agent resume {thread}` shows it."
        case StaleAnswerError() if thread:
            return f"`sandbox-agent resume {thread}` goes on with it."
        case NotFoundError():
            return "`sandbox-agent threads` lists what the server has."
        case RefusedError(status_code=401 | 403):
            return (
                "LANGGRAPH_API_KEY sets the key, --header another header. A key is sent only to an address "
                "from the same place: both exported (or --server), or both in .env."
            )
        case StreamLostError() if thread:
            return f"`sandbox-agent resume {thread}` goes on with it."
        case UnreachableError():
            again = f" `sandbox-agent resume {thread}` goes on with the thread." if thread else ""
            return f"`sandbox-agent serve` starts a server; --server names another.{again}"
    return ""


def screen_for(*, json: bool = False) -> "Screen":
    """Return the screen of a command: with `json` on the standard error, and nobody to ask."""
    from agent.cli.screen import Screen

    return Screen(VisibleConsole(file=output.error_terminal()), ask=False) if json else Screen()


def headers_of(given: list[str]) -> dict[str, str]:
    """Return headers as they were typed, `Name: value`.

    Raises:
        BadParameter: one cannot be sent.
    """
    pairs = [text.partition(":") for text in given]
    for name, separator, value in pairs:
        if not separator or not _TOKEN.fullmatch(name.strip()):
            raise typer.BadParameter("a header looks like `Name: value`", param_hint="--header")
        if not value.isascii() or not value.isprintable():
            raise typer.BadParameter("a header's value is printable ASCII", param_hint="--header")
    return {name.strip(): value.strip() for name, _, value in pairs}
