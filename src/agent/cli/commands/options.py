"""Options that several commands share."""

from typing import Annotated

import typer

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server", help="Address of the LangGraph server; default LANGGRAPH_URL.", show_default=False
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
ThreadArgument = Annotated[str, typer.Argument(help="Id of a thread; `sandbox-agent threads` lists them.")]
