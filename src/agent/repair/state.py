"""The state of plan_execute: plain data, small enough to be written at every step."""

from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages

# Python 3.11 needs this one: pydantic reads it for the schemas that the server shows.
from typing_extensions import TypedDict

from agent.sandbox.middleware import SandboxId

Status = Literal["passed", "already_green", "failed", "rejected", "setup_failed", "no_progress", "budget"]


class RepairInput(TypedDict, total=False):
    """What a client sends; `project` is needed, or an archive that was uploaded before."""

    project: dict[str, str]
    """The files to repair, relative path → text; at most 1 MB."""
    test_command: str
    """Decides by its exit code whether the tests pass; default `python -m pytest -q`."""
    setup_command: str
    """Runs once before the tests, such as an installation; default none."""
    workdir: str
    """The folder within the project that both commands start in; default the project itself."""
    goal: str
    """Words to the planner; default the last thing the human said in `messages`."""
    protect: list[str]
    """Globs of files that are put back before the tests are run; default tests, in the usual places."""
    limits: dict[str, Any]
    """`tries` (1 to 10, default 3), `steps` (1 to 200, default 40), `time_s` (10 to 86400, default 3600)."""
    messages: Annotated[list[AnyMessage], add_messages]
    """For chat front ends: what the human said, the plan, each step's report, the summary."""


class StepReport(TypedDict):
    """What came of a step."""

    file: str
    report: str
    """In the model's words; not checked."""
    diff: str
    """What it changed, clipped; the whole is in the state's `diff`."""


class RepairState(RepairInput, total=False):
    """All that the graph knows between steps."""

    sandbox_id: SandboxId
    sandbox_policy: dict[str, Any]
    """How the sandbox is kept, as the run began; a resume cannot change it."""
    plan_approval: str
    """When a human is asked, as the run began; a resume cannot change it."""
    archive: dict[str, Any] | None
    """The uploaded project, which lies in the sandbox: `{"sha256", "size_bytes"}`."""
    prepared: str
    """Which preparation the sandbox must bear the mark of."""
    baseline: str
    """For an archive: digest of the list of what it held."""
    clock: str
    """The sandbox's time when it was prepared: what is written outside the project later shows by it."""
    spent_s: float
    """Working time so far."""
    iteration: int
    """Which try this is, from 1."""
    rejections: int
    done: int
    """Steps carried out, over all tries."""
    plan: dict[str, Any]
    edited: bool
    """Whether the plan is a human's edit of the model's."""
    step: int
    """How many steps of the current plan are done."""
    steps: list[StepReport]
    """What came of each step of the current plan."""
    changes: dict[str, str | None]
    """Files that differ from the input by now: path → new text, None for a deleted one."""
    executable: dict[str, bool]
    """Of the changed files, those that are executable, or are no longer."""
    left_out: dict[str, str]
    """Changed files that no patch can hold, with the reason."""
    by_products: list[str]
    """Files that the set-up and the first test run left behind; no part of the repair."""
    setup_changed: dict[str, str]
    """Files of the project that the set-up changed, with the digest it gave them; no part of the repair."""
    tests_before: dict[str, Any]
    tests_after: dict[str, Any] | None
    """TestReport as plain data, at the baseline and at the last verification."""
    outcomes: dict[str, str]
    """What the tests showed of each state of the files: its digest → the failures' digest, or `green`."""
    story: str
    """What earlier plans did and what was said of them, for the next one."""
    decisions: list[dict[str, Any]]
    """What was decided of each plan, and by whom."""
    changed_tests: list[str]
    """Protected files the agent changed; they were restored before the tests ran."""
    outside: list[str]
    """Files outside the project that were written while steps were carried out."""
    warnings: list[str]
    """What a reader of the result should know: losses, flaky tests, tests that no longer run."""
    status: Status | None
    diff: str
    """The changes to the project, a unified diff that `git apply` takes."""
    summary: str
