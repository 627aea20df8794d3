"""What one run or one assistant may vary; sent as JSON, shown as a form in Studio."""

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.dataclasses import dataclass
from pydantic.json_schema import SkipJsonSchema

from agent.errors import InputError, problems
from agent.repair.limits import PlanApproval
from agent.sandbox.policy import EnvName, Internet, Keep, LeaseS, Start, TimeoutS


# A dataclass and not a BaseModel: `dataclasses.replace`, with which the middleware puts the live sandbox in
# for each tool call, refuses models. `Any`, since a field typed as a sandbox breaks the schema's generation.
# Unknown names are refused in a program of one's own; the LangGraph server drops them before they get here.
@dataclass(config=ConfigDict(extra="forbid"))
class Context:
    """Options of a run; a client sends them again when it resumes, since context is not checkpointed."""

    model: str | None = Field(
        default=None,
        title="Model",
        description="Chat model for this run, `provider:name` as init_chat_model knows it; empty means the "
        "deployment's.",
    )
    keep: Keep | None = Field(
        default=None,
        title="Keep the sandbox",
        description="run: it ends with the run. thread: it is paused instead, and the next turn finds its "
        "files and variables. Empty means the deployment's way.",
    )
    start: Start | None = Field(
        default=None,
        title="Start the sandbox",
        description="eager: when the run starts. lazy: when a tool first needs it.",
    )
    lease_s: LeaseS | None = Field(
        default=None,
        title="Lease",
        description="How long the sandbox lives unattended before it is paused, in seconds.",
    )
    command_timeout_s: TimeoutS | None = Field(
        default=None, title="Command limit", description="Limit of one shell command, in seconds."
    )
    code_timeout_s: TimeoutS | None = Field(
        default=None, title="Code limit", description="Limit of one run of Python code, in seconds."
    )
    template: str | None = Field(
        default=None, title="Template", description="The E2B template the sandbox is made from."
    )
    internet: Internet | None = Field(
        default=None,
        title="Internet",
        description="off, setup (only while a set-up command runs), on, or a list of the hosts that can be "
        "reached; never more than the deployment allows.",
    )
    envs: list[EnvName] | None = Field(
        default=None,
        title="Variables",
        description="Names of the variables that commands and code are given, among those the deployment "
        "passes on; empty means all of them.",
    )
    instructions: Annotated[str, Field(max_length=20_000)] | None = Field(
        default=None, title="Instructions", description="Added to the system prompt of `agent`."
    )
    ask_first: list[str] | None = Field(
        default=None,
        title="Ask first",
        description="Tools whose calls a human approves before they run, such as run_command; more than the "
        "deployment's, never fewer.",
    )
    plan_approval: PlanApproval | None = Field(
        default=None,
        title="Approval of plans",
        description="each: a human approves every plan of plan_execute. first: only the first. never: none; "
        "no less than the deployment asks. Empty means each. Fixed when a run begins: a resume cannot change "
        "it.",
    )
    sandbox: SkipJsonSchema[Any] = Field(default=None, repr=False)
    """The live sandbox, an `e2b_code_interpreter.AsyncSandbox`.

    Set for each tool call by `SandboxMiddleware`. A caller in the same process may pass a sandbox of its
    own: it is used as it is, and never paused or killed by this package. Hidden from the JSON schema.
    """

    @model_validator(mode="wrap")
    @classmethod
    def _refused_in_one_line(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Say what is wrong as everywhere else: clients send it, as context or as `configurable`."""
        try:
            return handler(given)
        except ValidationError as exc:
            raise InputError(f"context: {problems(exc, 'context')}") from None
