"""Options that several commands share."""

import uuid
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from agent.cli.output import typed


def address(given: str | None) -> str | None:
    """Return a server's address as it was typed.

    Raises:
        BadParameter: it is none.
    """
    if given is None:
        return None
    try:
        parts = urlsplit(given)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets or a port that are none
        fits = False
    if not fits:
        raise typer.BadParameter(f"{given!r} is no address such as http://127.0.0.1:2024")
    return given


def thread_id(given: str | None) -> str | None:
    """Return a thread's id as it was typed.

    Raises:
        BadParameter: it is none.
    """
    try:
        if given is not None:
            uuid.UUID(given)
    except ValueError:
        raise typer.BadParameter(
            f"{given!r} is no id of a thread; `sandbox-agent threads` lists them"
        ) from None
    return given


def words(given: str | None) -> str | None:
    """Return words as they were typed, whatever this terminal's encoding makes of them."""
    return None if given is None else typed(given)


def folder(given: str) -> Path:
    """Return a folder as it was typed.

    Raises:
        BadParameter: it is empty: `Path("")` would be the current folder.
    """
    if not given:
        raise typer.BadParameter("an empty path names nothing; `.` is the current folder")
    return Path(given)


ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        help="Address of the LangGraph server; default LANGGRAPH_URL.",
        show_default=False,
        callback=address,
    ),
]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", help="`Name: value`, sent with every request; may be repeated."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Approve without asking.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Write one JSON object per event.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also show tool output and the model's words.")
]
ModelOption = Annotated[
    str,
    typer.Option(help="Chat model for this run, `provider:name`; default the server's.", show_default=False),
]
ThreadArgument = Annotated[
    str, typer.Argument(help="Id of a thread; `sandbox-agent threads` lists them.", callback=thread_id)
]
