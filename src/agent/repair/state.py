"""The state of plan_execute: plain data, small enough to be written at every step.

Every client of a thread can write every key, so that what a node reads is input: `checked_state` says whether
it can be worked with. What only the graph may say, such as an approval, is sealed (`consent.py`).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Required, get_type_hints

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    with_config,
)

# Python 3.11 needs this one: pydantic reads it for the schemas that the server shows.
from typing_extensions import TypedDict

from agent.errors import InputError, problems
from agent.repair.changes import Held, path_of
from agent.repair.limits import Limits, PlanApproval
from agent.repair.plan import Plan
from agent.repair.report import TestReport
from agent.repair.request import checked_request, newest_limits, words_of
from agent.sandbox.middleware import SandboxId, newest
from agent.sandbox.policy import SandboxPolicy

Status = Literal[
    "passed",
    "already_green",
    "nothing_tested",
    "failed",
    "rejected",
    "setup_failed",
    "no_progress",
    "budget",
    "needs_project",
]

_SHOWN = ConfigDict(use_attribute_docstrings=True)
"""What stands below a key is its description in the schemas that callers are shown."""


@with_config(_SHOWN)
class RepairInput(TypedDict, total=False):
    """What a client sends; `project` is needed, or an archive that was uploaded before."""

    project: dict[str, str]
    """The files to repair, such as {"app.py": "...", "tests/test_app.py": "..."}: relative path to text, with
    the tests; at most 1 MB. Needed, unless an archive was uploaded to the thread."""
    test_command: Annotated[str, words_of("test_command")]
    """A shell command that decides by its exit code whether the tests pass; default `python -m pytest -q`."""
    setup_command: Annotated[str, words_of("setup_command")]
    """A shell command that runs once before the tests, such as an installation; default none."""
    workdir: Annotated[str, words_of("workdir")]
    """The folder within the project that both commands start in; default the project itself."""
    goal: Annotated[str, words_of("goal")]
    """What to do, in words to the planner; default the last thing the human said in `messages`."""
    protect: list[str]
    """Globs of files that are put back before the tests are run, such as tests/**; default tests, in the
    usual places; [] protects nothing."""
    limits: Annotated[dict[str, Any], WithJsonSchema(Limits.model_json_schema()), newest_limits]
    """What the run may spend; each has a default."""
    messages: Annotated[list[AnyMessage], add_messages]
    """For chat front ends: what the human said, the plan, each step's report, the summary."""


@with_config(_SHOWN)
class RepairOutput(TypedDict, total=False):
    """What came of it; all else is in the thread's state."""

    status: Status | None
    """How it ended: `passed` and `already_green` are good ends; null before its end."""
    summary: str
    """All of it in words, for a human."""
    diff: str
    """The changes to the project, a unified diff that `git apply` takes."""
    messages: Annotated[list[AnyMessage], add_messages]
    """For chat front ends; of a run without a thread the last one alone."""


class StepReport(TypedDict):
    """What came of a step."""

    file: str
    report: str
    """In the model's words; not checked."""
    diff: str
    """What it changed, clipped; the whole is in the state's `diff`."""


class Decision(TypedDict, total=False):
    """What was decided of a plan."""

    iteration: int
    plan_hash: str
    """Of the plan that is carried out with it."""
    type: Required[Literal["approve", "edit", "reject"]]
    by: Literal["human", "policy"]
    run: str
    """That carried the answer."""
    user: str
    """Who, where the server has authentication."""
    message: str
    seal: str
    """Shows that the graph wrote the decision."""


def _usable(model: Any) -> AfterValidator:
    """Return the check that a map is one of these; the map itself stays as it is."""
    adapter: TypeAdapter[Any] = TypeAdapter(model)

    def check(data: dict[str, Any]) -> dict[str, Any]:
        if data:
            adapter.validate_python(data)
        return data

    return AfterValidator(check)


def _path(key: str) -> str:
    path = path_of(key)
    if "\0" in path or {"", ".", ".."} & set(path.split("/")):
        raise ValueError(f"{path[:100]!r} is no path within the project")
    return key


# `plan`, `plan_seal` and `decisions` take the later of two values of one step: a client that sends a run past
# an open question writes them beside the node that asks, and nobody could read the thread any more.
Path = Annotated[str, AfterValidator(_path)]
Count = Annotated[int, Field(ge=0, le=10_000)]


class RepairState(RepairInput, RepairOutput, total=False):
    """All that the graph knows between steps."""

    sandbox_id: SandboxId
    request_seal: str
    """Shows that what the repair was begun for is as it was prepared."""
    sandbox_policy: Annotated[dict[str, Any], _usable(SandboxPolicy)]
    """How the sandbox is kept, as the run began; a resume cannot change it."""
    plan_approval: PlanApproval
    """When a human is asked, as the run began; a resume cannot change it."""
    plan_approval_seal: str
    """Without it `plan_approval` is a client's, and each plan is asked about."""
    archive: dict[str, Any] | None
    """The uploaded project, which lies in the sandbox: `{"sha256", "size_bytes"}`."""
    prepared: str
    """Which preparation the sandbox must bear the mark of."""
    baseline: str
    """For an archive: digest of the list of what it held."""
    clock: str
    """The sandbox's time when it was prepared: what is written outside the project later shows by it."""
    spent_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Working time so far."""
    iteration: Annotated[Count, Field(ge=1)]
    """Which try this is, from 1."""
    rejections: Count
    done: Count
    """Steps carried out, over all tries."""
    plan: Annotated[dict[str, Any], _usable(Plan), newest]
    plan_seal: Annotated[str, newest]
    """Shows that the graph made the plan, or took it from a human's edit."""
    begun_seal: str
    """Shows that the run which carried the last decision began the plan, and was not rolled back."""
    edited: bool
    """Whether the plan is a human's edit of the model's."""
    step: Count
    """How many steps of the current plan are done."""
    steps: list[StepReport]
    """What came of each step of the current plan."""
    changes: dict[Path, Held | None]
    """Files that differ from the input by now: path → new content, None for a deleted one (`changes.py`)."""
    executable: dict[Path, bool]
    """Of the changed files, those that are executable, or are no longer."""
    left_out: dict[str, str]
    """Changed files that no patch can hold, with the reason."""
    by_products: list[str]
    """Files that the set-up and the first test run left behind; no part of the repair."""
    setup_changed: dict[str, str]
    """Files of the project that the set-up changed, with the digest it gave them; no part of the repair."""
    tests_before: Annotated[dict[str, Any], _usable(TestReport)]
    tests_after: Annotated[dict[str, Any], _usable(TestReport)] | None
    """TestReport as plain data, at the baseline and at the last verification."""
    outcomes: dict[str, str]
    """What the tests showed of each state of the files: its digest → the failures' digest, or `green`."""
    story: str
    """What earlier plans did and what was said of them, for the next one."""
    decisions: Annotated[list[Decision], newest]
    """What was decided of each plan, and by whom."""
    changed_tests: list[str]
    """Protected files the agent changed; they were restored before the tests ran."""
    outside: list[str]
    """Files outside the project that were written while steps were carried out."""
    warnings: list[str]
    """What a reader of the result should know: losses, flaky tests, tests that no longer run."""


_CHECKS: dict[str, TypeAdapter[Any]] = {
    name: TypeAdapter(hint)
    for name, hint in get_type_hints(RepairState, include_extras=True).items()
    if name != "messages"
}


_NEEDED = frozenset(_CHECKS) - {
    "sandbox_id",
    "plan_approval_seal",
    "plan_seal",
    "request_seal",
    "archive",
    "baseline",
}
"""What bootstrap writes; a client can send a run past it."""


def checked_state(state: Mapping[str, Any]) -> None:
    """Check that the keys of a state which are there are what this graph would have written.

    Raises:
        InputError: a client wrote something else; says which key and why.
    """
    if missing := sorted(_NEEDED - state.keys()):
        raise InputError(
            f"this thread has no repair to go on with: its state holds no `{missing[0]}`. A repair begins "
            "with an input that holds the `project`"
        )
    for name in _CHECKS.keys() & state.keys():
        try:
            _CHECKS[name].validate_python(state[name], strict=True)
        except ValidationError as exc:
            raise InputError(
                f"the thread's state holds no usable `{name}` ({problems(exc, name)[:500]}). It was changed "
                "from outside; a new input begins a new repair"
            ) from None
    checked_request(state)
