"""Printing `.env.example`: `python -m agent.env_example`."""

import sys
import textwrap

from agent.setting_types import bounds
from agent.settings import Settings


def env_example() -> str:
    """Return the text of `.env.example`: every variable with its default, range and meaning."""
    lines = [
        "# Copy to .env and set what differs. An empty value means the default.",
        "# `langgraph dev` run by hand lets this file win over the environment, empty values too: take out",
        "# the lines of variables that you set elsewhere.",
        "# Printed by `python -m agent.env_example`; a test keeps the two in step.",
    ]
    for field in Settings.model_fields.values():
        if not field.description:
            continue
        lines.append("")
        lines += textwrap.wrap(field.description, 108, initial_indent="# ", subsequent_indent="# ")
        limits = bounds(field)
        if limits:
            lines.append(f"# Whole number from {limits[0]} to {limits[1]}.")
        default = "" if field.default is None else str(field.default)
        shown = default.lower() if isinstance(field.default, bool) else default
        lines.append(f"{field.alias}={shown}")
    lines += ["", *_TRACING]
    return "\n".join(lines) + "\n"


_TRACING = (
    "# LangSmith tracing is yours to turn on; LangChain itself reads these variables. Traces hold the",
    "# conversation, the code that ran and what it printed: turn it on only where that may be stored.",
    "LANGSMITH_TRACING=false",
    "LANGSMITH_API_KEY=",
    "LANGSMITH_PROJECT=",
)

if __name__ == "__main__":
    sys.stdout.write(env_example())
