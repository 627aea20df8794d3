"""The state of plan_execute: plain data, small enough to be written at every step."""

from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages

# Python 3.11 needs this one: pydantic reads it for the schemas that the server shows.
from typing_extensions import TypedDict

from agent.sandbox.middleware import SandboxId

Status = Literal["passed", "already_green", "failed", "rejected", "setup_failed"]
MAX_TRIES = 3
DEFAULT_TEST_COMMAND = "python -m pytest -q"


class RepairInput(TypedDict, total=False):
    """What a client sends; `project` is needed."""

    project: dict[str, str]
    """The files to repair, relative path → text; at most 1 MB."""
    test_command: str
    """Decides by its exit code whether the tests pass; default `python -m pytest -q`."""
    setup_command: str
    """Runs once before the tests, such as an installation; default none."""
    goal: str
    """Words to the planner; optional."""


class RepairState(RepairInput, total=False):
    """All that the graph knows between steps."""

    messages: Annotated[list[AnyMessage], add_messages]
    """For chat front ends: the plan, each step's report, the summary."""
    sandbox_id: SandboxId
    sandbox_policy: dict[str, Any]
    """How the sandbox is kept, as the run began; a resume cannot change it."""
    iteration: int
    """Which try this is, from 1 to 3."""
    plan: dict[str, Any]
    step: int
    """How many steps of the current plan are done."""
    steps: list[dict[str, Any]]
    """What came of each step of the current plan: `{"file", "report"}`."""
    changes: dict[str, str | None]
    """Files that differ from the input by now: path → new text, None for a deleted one."""
    by_products: list[str]
    """Files that the set-up and the first test run left behind; no part of the repair."""
    tests_before: dict[str, Any]
    tests_after: dict[str, Any] | None
    """TestReport as plain data, at the baseline and at the last verification."""
    story: str
    """What earlier tries did, for the next plan."""
    decisions: list[dict[str, Any]]
    """What the human decided, one a question."""
    changed_tests: list[str]
    """Protected files the agent changed; they were restored before the tests ran."""
    status: Status | None
    diff: str
    """The changes to the project, a unified diff that `git apply` takes."""
    summary: str
