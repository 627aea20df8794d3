"""Events as JSON, one object a line, for other programs."""

import dataclasses
import json
import re
import sys
from typing import Any, TextIO

from agent.cli.screen import Busy
from agent.client import Artifact, ClientError, Event, Tests, Update


class JsonView:
    """Writes each event as `{"event": "<kind>", …}` and flushes it.

    The kinds are the names of the client's event classes in snake case: `started`, `token`, `progress`,
    `tests`, `tool_event`, `artifact`, `sandbox_notice`, `update`, `custom`, `reconnecting`, `interrupted`,
    `finished`, `failed`.

    Args:
        file: default the standard output.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file or sys.stdout

    def follow(self, busy: Busy | None) -> None:
        """Do nothing: there is no spinner in a stream of objects."""

    def show(self, event: Event) -> None:
        """Write one event."""
        if isinstance(event, Update):  # what a node wrote is in the state at the end
            self.write("update", {"node": event.node})
        else:
            self.write(_snake(type(event).__name__), _plain(event))

    def takes(self, artifact: Artifact) -> bool:
        """Fetch nothing: the event names the artifact and its address."""
        return False

    def take(self, artifact: Artifact, data: bytes) -> None:
        """Take nothing; see `takes`."""

    def error(self, exc: ClientError) -> None:
        """Write why the following ended before the run did: `{"event": "error", "kind": "busy_error", …}`."""
        fields = {"kind": _snake(type(exc).__name__), "message": exc.problem, "next_step": exc.next_step}
        self.write("error", fields | dataclasses.asdict(exc.where))

    def write(self, kind: str, fields: dict[str, Any]) -> None:
        """Write one object of a kind."""
        # In ASCII: a terminal would obey what is escaped, and no encoding takes a half of a surrogate pair.
        line = json.dumps({"event": kind, **fields}, default=str)
        self._file.write(f"{line}\n")
        self._file.flush()


def _plain(event: Event) -> dict[str, Any]:
    # Rename the field that would hide the kind.
    fields = dataclasses.asdict(event)
    if isinstance(event, Tests):  # an exit code of 0 is not all that it takes
        fields["report"]["green"] = event.report.green
    return {"what" if name == "event" else name: value for name, value in fields.items()}


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
