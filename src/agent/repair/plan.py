"""The plan: what the model proposes and a human approves."""

import hashlib
import json
from collections.abc import Collection, Sequence
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agent.messages.texts import well_formed
from agent.repair.ignoring import always_ignored
from agent.repair.tree import matches

MAX_STEPS = 20
MAX_NAME_BYTES = 255
"""Of one part of a path, as file systems have it."""
MAX_PATH_CHARS = 1_000


Text = Annotated[str, BeforeValidator(lambda given: well_formed(given) if isinstance(given, str) else given)]
"""JSON can hold halves of characters, which no digest and no checkpoint can."""


class Step(BaseModel):
    """One change to one file."""

    model_config = ConfigDict(extra="forbid")

    file: str = Field(min_length=1, description="Path of the file to change, relative to the project.")
    change: Text = Field(
        min_length=1, description="What to change in it, precisely enough to be carried out."
    )
    reason: Text = Field(description="Why: which failing test or defect it mends.")


class Plan(BaseModel):
    """An ordered list of changes that should make the tests pass."""

    model_config = ConfigDict(extra="forbid")

    summary: Text = Field(description="What is wrong and how the steps mend it, in one or two sentences.")
    steps: list[Step] = Field(min_length=1, max_length=MAX_STEPS, description="The changes, in order.")

    def hash(self) -> str:
        """Return a digest of the plan's meaning: equal plans have equal digests, 64 hex digits."""
        text = json.dumps(self.model_dump(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def as_markdown(self) -> str:
        """Return the plan for a human to read."""
        steps = [f"{i}. `{s.file}`: {s.change}\n   ({s.reason})" for i, s in enumerate(self.steps, 1)]
        return "\n".join([self.summary, "", *steps])

    def problems(self, protect: Sequence[str], max_steps: int) -> str:
        """Return what keeps the plan from being carried out in this project; empty where nothing does.

        Args:
            protect: globs of files whose change would be undone.
            max_steps: how many steps are left to this run.
        """
        found = [f"step {i}: {why}" for i, s in enumerate(self.steps, 1) if (why := _wrong(s.file, protect))]
        if len(self.steps) > max_steps:
            found.append(f"{len(self.steps)} steps are too many: {max_steps} are left to this run")
        return "; ".join(found)


def path_problem(path: str) -> str:
    """Return what is wrong with a path that is to be relative to the project; empty where nothing is."""
    if not path or path.startswith("/") or {"", ".", ".."} & set(path.split("/")):
        return f"{path[:200]!r} is no path within the project: relative, with no empty, . or .. parts"
    # JSON can hold half a surrogate pair, which no file name and no checkpoint can.
    if "\0" in path or any("\ud800" <= char <= "\udfff" for char in path):
        return f"{path[:200]!r} has characters that no file name can have"
    return too_long(path)


def too_long(path: str) -> str:
    """Return how a path is longer than file systems take; empty where it is not."""
    parts = path.encode("utf-8", "surrogateescape").split(b"/")
    if max(map(len, parts)) > MAX_NAME_BYTES or len(path) > MAX_PATH_CHARS:
        return f"{path[:60]!r}… has a name of more than {MAX_NAME_BYTES} bytes, or is too long a path"
    return ""


def file_and_folder(paths: Collection[str]) -> tuple[str, str] | None:
    """Return a path that is a file and a folder at once, and one of the paths in it, if there is one."""
    known = set(paths)
    for inner in paths:
        for at, char in enumerate(inner):
            if char == "/" and inner[:at] in known:
                return inner[:at], inner
    return None


def _wrong(path: str, protect: Sequence[str]) -> str:
    if problem := path_problem(path):
        return problem
    if glob := next((glob for glob in protect if matches(path, [glob])), None):
        return (
            f"{path!r} is protected by {glob!r}: it is put back as it was before the tests are run. To allow "
            "the change, the caller gives `protect` (`--protect`) without that glob"
        )
    return f"{path!r} is a cache's, or version control's" if always_ignored(path) else ""
