"""What a human may answer: exactly one decision an action, each of a kind that its tool allows."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union

from langchain_core.messages import ToolCall
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from agent.approvals.inbox import from_inbox

Decision = Literal["approve", "edit", "reject", "respond"]
DECISIONS: tuple[Decision, ...] = ("approve", "edit", "reject", "respond")


class _Strict(BaseModel):
    """Extra keys are refused, so that an answer meant for something else cannot pass for this."""

    model_config = ConfigDict(extra="forbid")


class Approve(_Strict):
    """Run the call as shown."""

    type: Literal["approve"]


class Reject(_Strict):
    """Do not run the call."""

    type: Literal["reject"]
    message: str = Field(default="", description="Why, in the human's words; the model reads it.")


class Respond(_Strict):
    """Answer in the tool's place; the call is not run."""

    type: Literal["respond"]
    message: str = Field(description="What the model reads as the tool's result.")


@dataclass(frozen=True, slots=True)
class Asked:
    """One call that a human is asked about."""

    call: ToolCall
    tool: BaseTool
    allowed: Sequence[Decision]

    def words(self) -> str:
        """Return the tool's name and what may be decided, for an error."""
        return f"{self.call['name']} ({' or '.join(self.allowed)})"


def answered_by(runtime: Any) -> dict[str, str]:
    """Return who answered, as far as the server knows: a human, and with authentication which one.

    Args:
        runtime: a LangGraph `Runtime` of the run that carried the answer.
    """
    user = getattr(getattr(runtime, "server_info", None), "user", None)
    identity = getattr(user, "identity", None)
    return {"by": "human"} | ({"user": str(identity)} if identity else {})


def digest(actions: Any) -> str:
    """Return a hash of what was shown."""
    return hashlib.sha256(json.dumps(actions, sort_keys=True, default=str).encode()).hexdigest()[:16]


def answer_model(asked: Sequence[Asked], actions_hash: str) -> type[BaseModel]:
    """Return the schema of an answer to exactly these calls.

    Args:
        asked: the calls, in the order of their decisions.
        actions_hash: of what was shown; an answer that names another is refused.
    """
    each = tuple(_decision(one) for one in asked)
    older: dict[str, Any] = {}
    if len(asked) == 1:
        call, allowed = asked[0].call, asked[0].allowed
        # A validator of its own makes the schema that clients are given no other.
        older["_older"] = model_validator(mode="before")(
            lambda answer: from_inbox(answer, call["args"], allowed)
        )
    fields: dict[str, Any] = {
        "decisions": (tuple[each], Field(description="One for each action, in order.")),  # type: ignore[valid-type]
        "actions_hash": (Literal[actions_hash] | None, Field(None, description="Checked if given.")),
    }
    return create_model("Answer", __base__=_Strict, __validators__=older, **fields)


def _decision(asked: Asked) -> Any:
    kinds: dict[Decision, Any] = {"approve": Approve, "reject": Reject, "respond": Respond}
    members = tuple(_edit(asked.tool) if kind == "edit" else kinds[kind] for kind in asked.allowed)
    # The discriminator: a wrong answer gets one error about its own kind, not one for each there is.
    return Annotated[Union[members], Field(discriminator="type")] if len(members) > 1 else members[0]  # noqa: UP007


def _edit(tool: BaseTool) -> type[BaseModel]:
    """Return the decision to run the call with other arguments: the same tool, and arguments it takes."""
    action: dict[str, Any] = {"name": (Literal[tool.name], ...), "args": (_arguments(tool), ...)}
    edited = create_model("EditedAction", __base__=_Strict, **action)
    edit: dict[str, Any] = {"type": (Literal["edit"], ...), "edited_action": (edited, ...)}
    return create_model("Edit", __base__=_Strict, **edit)


def _arguments(tool: BaseTool) -> Any:
    schema = tool.tool_call_schema
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return dict[str, Any]
    # A misspelt optional argument would otherwise vanish, and something else run than what was written.
    return type(schema.__name__, (schema,), {"model_config": ConfigDict(extra="forbid"), "__doc__": None})
