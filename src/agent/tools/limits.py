"""The limits tools keep."""

from dataclasses import dataclass
from typing import Self

from agent.settings import Settings


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a call may take and how much of its output the model is shown.

    The times hold for a sandbox that a caller brought; one of our own carries its run's policy.
    """

    command_timeout_s: int = 120
    code_timeout_s: int = 120
    max_output_bytes: int = 16_384

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the limits that the settings name."""
        return cls(settings.command_timeout_s, settings.code_timeout_s, settings.max_output_bytes)


def limit_of(asked_s: int | None, usual_s: int) -> int:
    """Return a call's limit: what the model asks for, within what is allowed; 0 asks for all of it."""
    return min(asked_s, usual_s) if asked_s and asked_s > 0 else usual_s
