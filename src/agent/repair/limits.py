"""How far a repair may go, and when a human is asked."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

PlanApproval = Literal["each", "first", "never"]
"""`each`: every plan is shown to a human first. `first`: only the first. `never`: none."""

STRICTNESS: tuple[PlanApproval, ...] = ("never", "first", "each")
"""From the loosest to the strictest."""

MAX_REJECTIONS = 5
"""Plans that a human turns down in words; then the run ends, rather than guess for ever."""


def strictest(*approvals: PlanApproval) -> PlanApproval:
    """Return the one that asks most often."""
    return max(approvals, key=STRICTNESS.index)


class Limits(BaseModel):
    """What one run may spend; the human's time does not count."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    tries: int = Field(3, ge=1, le=10, description="Plans carried out and verified.")
    steps: int = Field(40, ge=1, le=200, description="Steps carried out, over all tries.")
    time_s: int = Field(
        3600, ge=10, le=86_400, description="Working time in seconds, without waiting for a human."
    )
