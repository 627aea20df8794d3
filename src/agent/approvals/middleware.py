"""Asking a human before risky tool calls: one question a model turn, whatever the number of calls.

Consent is checked where a call runs, not only where it was asked for: a client can write state, and send a
run straight to the tools. A call that asks first runs only with a seal of the human's approval of exactly
that call, given in this run. And a human is asked only about calls that the model made in this turn: an
answer would otherwise count for a call that a client put in the place of the one that was shown.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig, ModelRequest
from langchain.agents.middleware.human_in_the_loop import HITLRequest
from langchain.agents.middleware.types import (
    AgentState,
    ModelCallResult,
    OmitFromInput,
    PrivateStateAttr,
    ToolCallRequest,
)
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import ValidationError

from agent.approvals.answers import answer_to
from agent.approvals.decisions import DECISIONS, Asked, Decision, answer_model, answered_by, digest
from agent.approvals.inbox import for_inboxes
from agent.approvals.seals import Seals
from agent.budget import clock_started, turn_begun
from agent.errors import InputError, problems
from agent.sandbox.owners import owner_of

_EDITED = "hitl_edited_tool_calls"
_APPROVED = "approved_calls"
_ASK_FIRST, _MADE, _CALL = "ask_first", "calls_seal", "approved call"

NOT_APPROVED = (
    "error: this call needs a human's approval, and in this run nobody gave it: it was not run. Make the "
    "call again, and a human is asked."
)
NOT_THE_MODELS = (
    "error: this call needs a human's approval, and it is not one that you made in this turn: it was not run "
    "and nobody was asked. Make the call yourself if it is needed."
)


class ApprovalsState(AgentState[Any]):
    """What the middleware adds to the agent's state."""

    hitl_edited_tool_calls: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    """As in langchain's middleware: what a human put in the place of a call, by the call's id."""
    ask_first: NotRequired[Annotated[list[str], OmitFromInput]]
    """The tools that ask in this run, fixed when it began; a resume cannot change them."""
    ask_first_seal: NotRequired[Annotated[str, OmitFromInput]]
    """The run that fixed `ask_first`, and its seal: without it the list is a client's and all tools ask."""
    approved_calls: NotRequired[Annotated[dict[str, Any], OmitFromInput]]
    """What a human approved of the newest message's calls: call id → `{"type", "by", "user", "seal"}`."""


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
        seals: makes approvals unforgeable; default seals that only this process knows: in another one that
            goes on with the thread, every tool asks and nothing counts as approved.

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
        seals: Seals | None = None,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._ask_first = self._known(ask_first)
        self._seals = seals or Seals()
        allowed = allowed or {}
        super().__init__(
            {
                name: InterruptOnConfig(
                    allowed_decisions=list(allowed.get(name, DECISIONS)), description=_described
                )
                for name in self._tools
            }
        )

    def _known(self, names: Sequence[str]) -> set[str]:
        if unknown := sorted(set(names) - set(self._tools)):
            raise InputError(f"ask_first names no tool: {unknown[0]!r}; there are {', '.join(self._tools)}")
        return set(names)

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """Fix which tools ask in this run, and begin the turn's budget; a resumed run passes by."""
        more = self._known(getattr(runtime.context, "ask_first", None) or ())
        asking, owner = sorted(self._ask_first | more), owner_of(runtime)
        seal = await self._seals.seal(_ASK_FIRST, owner.thread, [owner.run, asking])
        return {"ask_first": asking, "ask_first_seal": f"{owner.run} {seal}", **turn_begun(state)}

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> ModelCallResult[Any]:
        """Call the model, and seal the calls it makes if a human is to be asked about one."""
        response = await handler(request)
        asking = await self._asking(request.state, request.runtime)
        for message in _ai_messages(response):
            if self._asked(message, asking):
                facts = _made(message, request.state)
                seal = await self._seals.seal(_MADE, owner_of(request.runtime).thread, facts)
                message.response_metadata = {**message.response_metadata, _MADE: seal}
        return response  # type: ignore[no-any-return]

    def after_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Refuse: the tools are asynchronous, and so is this agent."""
        raise NotImplementedError("this agent runs asynchronously: use ainvoke or astream")

    async def aafter_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Ask about the message's calls that ask first, and carry out what was decided."""
        message, answered = _newest(state["messages"])
        asking = await self._asking(state, runtime)
        asked = self._asked(message, asking) if message else []
        # A call that could not be read has its error already, and does not run.
        asked = [one for one in asked if one.call["id"] not in answered]
        if not asked or message is None:
            return {_EDITED: {}, _APPROVED: {}} if state.get(_EDITED) or state.get(_APPROVED) else None
        seal, thread = message.response_metadata.get(_MADE), owner_of(runtime).thread
        if not await self._seals.holds(seal, _MADE, thread, _made(message, state)):
            refused = [_refused(one.call, NOT_THE_MODELS) for one in asked]
            return {"messages": refused, _EDITED: {}, _APPROVED: {}}
        decisions = _answer(self._question(asked, state, runtime), asked, self._unattended(asked))
        answers, edited, approved = [], {}, {}
        for one, decision in zip(asked, decisions, strict=True):
            _, answer = self._process_decision(decision, one.call, self.interrupt_on[one.call["name"]])
            if answer:
                answers.append(answer)
                continue
            action: Mapping[str, Any] = one.call
            if decision["type"] == "edit":
                action = edited[one.call["id"]] = decision["edited_action"]
            seal = await self._seals.seal(_CALL, *_facts(one.call["id"], action, runtime))
            approved[one.call["id"]] = {"type": decision["type"], **answered_by(runtime), "seal": seal}
        # The message keeps the model's own calls; an edited one is put in its place when it runs.
        return {"messages": answers, _EDITED: edited, _APPROVED: approved, **clock_started()}

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Any) -> ToolMessage | Command[Any]:
        """Run the call, as it was edited; one that asks first only if a human approved exactly this one."""
        if not await self._permitted(request):
            return _refused(request.tool_call, NOT_APPROVED)
        result: ToolMessage | Command[Any] = await super().awrap_tool_call(request, handler)
        return result

    async def _permitted(self, request: ToolCallRequest) -> bool:
        call, edits = request.tool_call, request.state.get(_EDITED) or {}
        if not isinstance(edits, Mapping):
            return False
        edited = edits.get(call["id"])
        if edited is None and call["name"] not in await self._asking(request.state, request.runtime):
            return True
        action = call if edited is None else edited
        approvals = request.state.get(_APPROVED)
        approval = approvals.get(call["id"]) if isinstance(approvals, Mapping) else None
        if not isinstance(action, Mapping) or not isinstance(approval, Mapping):
            return False
        return await self._seals.holds(
            approval.get("seal"), _CALL, *_facts(call["id"], action, request.runtime)
        )

    async def _asking(self, state: Any, runtime: Any) -> set[str]:
        """Return the tools that ask: the deployment's in any case, and those of the run."""
        said, (run, _, seal) = state.get("ask_first"), str(state.get("ask_first_seal")).rpartition(" ")
        if await self._seals.holds(seal, _ASK_FIRST, owner_of(runtime).thread, [run, said]):
            return self._ask_first | set(said)
        return set(self._tools)

    def _asked(self, message: AIMessage, asking: Collection[str]) -> list[Asked]:
        return [
            Asked(call, self._tools[call["name"]], self.interrupt_on[call["name"]]["allowed_decisions"])
            for call in message.tool_calls
            if call["name"] in asking and call["name"] in self._tools
        ]

    def _unattended(self, asked: Sequence[Asked]) -> str:
        """Say how the calls would run without a question."""
        names = {one.call["name"] for one in asked}
        if always := sorted(names & self._ask_first):
            how = f"This deployment always asks about {', '.join(always)} (ASK_FIRST)"
        else:
            how = "A run or an assistant whose context has no `ask_first` is not asked about it"
        return f"{', '.join(sorted(names))} was not run, since a human approves it first. {how}"

    def _question(self, asked: Sequence[Asked], state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        pairs = [
            self._create_action_and_config(one.call, self.interrupt_on[one.call["name"]], state, runtime)
            for one in asked
        ]
        shown = HITLRequest(action_requests=[a for a, _ in pairs], review_configs=[c for _, c in pairs])
        return for_inboxes({**shown, "actions_hash": digest(shown["action_requests"])})


def _newest(messages: Sequence[Any]) -> tuple[AIMessage | None, set[str]]:
    """Return the model's newest message, and the ids of the calls that are answered behind it."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return message, answered
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return None, answered


def _ai_messages(response: Any) -> list[AIMessage]:
    """Return the model's messages in what a model call returned."""
    response = getattr(response, "model_response", response)
    messages = [response] if isinstance(response, AIMessage) else response.result
    return [message for message in messages if isinstance(message, AIMessage)]


def _made(message: AIMessage, state: Any) -> list[Any]:
    """Return what a model's calls are sealed for: the turn, and each call."""
    calls = [[call["id"], call["name"], call["args"]] for call in message.tool_calls]
    return [state.get("ask_first_seal"), calls]


def _refused(call: ToolCall, why: str) -> ToolMessage:
    return ToolMessage(why, tool_call_id=call["id"] or "", name=call["name"], status="error")


def _facts(call_id: str | None, action: Mapping[str, Any], runtime: Any) -> tuple[str, dict[str, Any]]:
    """Return what an approval is sealed for: the thread, and the call with the run it may run in."""
    owner = owner_of(runtime)
    return owner.thread, {
        "run": owner.run,
        "id": call_id,
        "name": action.get("name"),
        "args": action.get("args"),
    }


def _answer(question: dict[str, Any], asked: Sequence[Asked], unattended: str) -> list[Any]:
    """Stop the graph at the question; return the decisions once there are some.

    Raises:
        InputError: what came is no answer; nothing ran, and the question stays open. Or nobody can answer.
    """
    schema = answer_model(asked, question["actions_hash"])
    try:
        answer = schema.model_validate(answer_to(question, schema, unattended=unattended))
    except ValidationError as exc:
        expected = ", ".join(one.words() for one in asked)
        raise InputError(
            f"that is no answer to the question ({problems(exc, 'answer')}). Nothing was run and it is still "
            f"open. Answer with {len(asked)} decision{'s' if len(asked) > 1 else ''}: {expected}"
        ) from None
    decisions: list[Any] = answer.model_dump(exclude_unset=True)["decisions"]
    return decisions


def _described(tool_call: ToolCall, state: Any, runtime: Any) -> str:
    """Say what a call would do, each argument in a fence that its text cannot close."""
    parts = [f"The agent wants to call `{tool_call['name']}`."]
    for name, value in tool_call["args"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        longest = max((len(run) for run in re.findall("`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        parts.append(f"{name}:\n{fence}\n{text}\n{fence}")
    return "\n\n".join(parts)
