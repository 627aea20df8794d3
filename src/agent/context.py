"""What one run or one assistant may vary; sent as JSON, shown as a form in Studio."""

from typing import Any

from pydantic import Field
from pydantic.dataclasses import dataclass
from pydantic.json_schema import SkipJsonSchema


# A dataclass and not a BaseModel: `dataclasses.replace`, with which the middleware puts the live sandbox in
# for each tool call, refuses models. `Any`, since a field typed as a sandbox breaks the schema's generation.
@dataclass
class Context:
    """Options of a run; a client sends them again when it resumes, since context is not checkpointed."""

    model: str | None = Field(
        default=None,
        title="Model",
        description="Chat model for this run, `provider:name` as init_chat_model knows it; empty means the "
        "deployment's.",
    )
    sandbox: SkipJsonSchema[Any] = Field(default=None, repr=False)
    """The live sandbox, an `e2b_code_interpreter.AsyncSandbox`.

    Set for each tool call by `SandboxMiddleware`. A caller in the same process may pass a sandbox of its
    own: it is used as it is, and never paused or killed by this package. Hidden from the JSON schema.
    """
