"""Asking a human before risky tool calls: one question a model turn, whatever the number of calls."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig
from langchain.agents.middleware.human_in_the_loop import HITLRequest
from langchain.agents.middleware.types import AgentState, OmitFromInput, PrivateStateAttr, ToolCallRequest
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import ValidationError

from agent.approvals.decisions import DECISIONS, Asked, Decision, answer_model, digest
from agent.approvals.inbox import for_inboxes
from agent.errors import InputError, problems

_EDITED = "hitl_edited_tool_calls"


class ApprovalsState(AgentState[Any]):
    """What the middleware adds to the agent's state."""

    hitl_edited_tool_calls: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    """As in langchain's middleware: what a human put in the place of a call, by the call's id."""
    ask_first: NotRequired[Annotated[list[str], OmitFromInput]]
    """The tools that ask in this run, fixed when it began; a resume cannot change them."""


class ApprovalsMiddleware(HumanInTheLoopMiddleware[Any, Any, Any]):
    """Asks before calls of the tools that the deployment or the run's context (`ask_first`) names.

    langchain's own middleware with two things changed. Which tools ask is state, not construction. And the
    question is both what chat front ends render (`action_requests`, `review_configs`) and typed: an answer
    with the wrong number of decisions, or one that a tool does not allow, is refused before it is saved, and
    the question stays open.

    List it first: after an edit every other middleware sees the call that runs.

    Args:
        tools: the agent's; only these can ask.
        ask_first: names of tools that ask in every run; a run may add to them.
        allowed: what may be decided about a tool, where not everything may.

    Raises:
        InputError: `ask_first` names no tool of the agent.
    """

    state_schema = ApprovalsState

    def __init__(
        self,
        tools: Sequence[BaseTool],
        *,
        ask_first: Sequence[str] = (),
        allowed: Mapping[str, Sequence[Decision]] | None = None,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._ask_first = self._known(ask_first)
        allowed = allowed or {}
        super().__init__(
            {
                name: InterruptOnConfig(
                    allowed_decisions=list(allowed.get(name, DECISIONS)), description=_described, when=_asks
                )
                for name in self._tools
            }
        )

    def _known(self, names: Sequence[str]) -> set[str]:
        if unknown := sorted(set(names) - set(self._tools)):
            raise InputError(f"ask_first names no tool: {unknown[0]!r}; there are {', '.join(self._tools)}")
        return set(names)

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """Fix which tools ask in this run."""
        more = self._known(getattr(runtime.context, "ask_first", None) or ())
        return {"ask_first": sorted(self._ask_first | more)}

    def after_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Ask about the message's calls that ask first, and carry out what was decided."""
        message = next((one for one in reversed(state["messages"]) if isinstance(one, AIMessage)), None)
        asked = self._asked(message, state, runtime) if message else []
        if not asked or message is None:
            return {_EDITED: {}} if state.get(_EDITED) else None
        decisions = _answer(self._question(asked, state, runtime), asked)
        answers, edited = [], {}
        for one, decision in zip(asked, decisions, strict=True):
            _, answer = self._process_decision(decision, one.call, self.interrupt_on[one.call["name"]])
            if answer:
                answers.append(answer)
            elif decision["type"] == "edit":
                edited[one.call["id"]] = decision["edited_action"]
        # The message keeps the model's own calls; an edited one is put in its place when it runs.
        return {"messages": answers, _EDITED: edited}

    def _asked(self, message: AIMessage, state: Any, runtime: Runtime[Any]) -> list[Asked]:
        return [
            Asked(call, self._tools[call["name"]], config["allowed_decisions"])
            for call in message.tool_calls
            if (config := self.interrupt_on.get(call["name"]))
            and self._should_interrupt(call, config, state, runtime)
        ]

    def _question(self, asked: Sequence[Asked], state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        pairs = [
            self._create_action_and_config(one.call, self.interrupt_on[one.call["name"]], state, runtime)
            for one in asked
        ]
        shown = HITLRequest(action_requests=[a for a, _ in pairs], review_configs=[c for _, c in pairs])
        return for_inboxes({**shown, "actions_hash": digest(shown["action_requests"])})


def _answer(question: dict[str, Any], asked: Sequence[Asked]) -> list[Any]:
    """Stop the graph at the question; return the decisions once there are some.

    Raises:
        InputError: what came is no answer; nothing ran, and the question stays open.
    """
    schema = answer_model(asked, question["actions_hash"])
    try:
        answer = schema.model_validate(interrupt(question, response_schema=schema))
    except ValidationError as exc:
        expected = ", ".join(one.words() for one in asked)
        raise InputError(
            f"that is no answer to the question ({problems(exc, 'answer')}). Nothing was run and it is still "
            f"open. Answer with {len(asked)} decision{'s' if len(asked) > 1 else ''}: {expected}"
        ) from None
    decisions: list[Any] = answer.model_dump(exclude_unset=True)["decisions"]
    return decisions


def _asks(request: ToolCallRequest) -> bool:
    return request.tool_call["name"] in request.state.get("ask_first", ())


def _described(tool_call: ToolCall, state: Any, runtime: Any) -> str:
    """Say what a call would do, each argument in a fence that its text cannot close."""
    parts = [f"The agent wants to call `{tool_call['name']}`."]
    for name, value in tool_call["args"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        longest = max((len(run) for run in re.findall("`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        parts.append(f"{name}:\n{fence}\n{text}\n{fence}")
    return "\n\n".join(parts)
