"""The plan: what the model proposes and a human approves."""

import hashlib
import json

from pydantic import BaseModel, ConfigDict, Field

MAX_STEPS = 20


class Step(BaseModel):
    """One change to one file."""

    model_config = ConfigDict(extra="forbid")

    file: str = Field(min_length=1, description="Path of the file to change, relative to the project.")
    change: str = Field(min_length=1, description="What to change in it, precisely enough to be carried out.")
    reason: str = Field(description="Why: which failing test or defect it mends.")


class Plan(BaseModel):
    """An ordered list of changes that should make the tests pass."""

    model_config = ConfigDict(extra="forbid")

    summary: str = Field(description="What is wrong and how the steps mend it, in one or two sentences.")
    steps: list[Step] = Field(min_length=1, max_length=MAX_STEPS, description="The changes, in order.")

    def hash(self) -> str:
        """Return a digest of the plan's meaning: equal plans have equal digests, 64 hex digits."""
        text = json.dumps(self.model_dump(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def as_markdown(self) -> str:
        """Return the plan for a human to read."""
        steps = [f"{i}. `{s.file}`: {s.change}\n   ({s.reason})" for i, s in enumerate(self.steps, 1)]
        return "\n".join([self.summary, "", *steps])
