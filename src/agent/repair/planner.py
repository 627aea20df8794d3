"""Asking the model for a plan until it is one."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import ValidationError

from agent.messages.answers import ended_early, hearing, problem_of, texts_of
from agent.messages.attachments import Takes
from agent.messages.requests import acceptable
from agent.messages.texts import object_of, well_formed_deeply
from agent.repair.plan import Plan
from agent.repair.prompts import PLANNER
from agent.tools.budget import clipped

MAX_ASKS = 3


class NoPlanError(Exception):
    """The model gave no plan that can be carried out; says what was wrong with the last one."""


async def propose(model: BaseChatModel, request: str, problems: Callable[[Plan], str] = lambda _: "") -> Plan:
    """Return a valid plan.

    An invalid one is sent back with what is wrong with it.

    Args:
        model: answers with structured output.
        request: what to plan.
        problems: says what keeps a well-formed plan from being carried out.

    Raises:
        NoPlanError: the model gave none in three asks.
    """
    structured, takes = model.with_structured_output(Plan, include_raw=True), Takes.of(model)
    messages: list[AnyMessage] = [SystemMessage(PLANNER), HumanMessage(request)]
    words = ""
    for _ in range(MAX_ASKS):
        with hearing() as heard:
            answer = await _asked(structured, acceptable(messages, takes).messages)
        plan, raw = answer["parsed"], answer["raw"]
        # What came of an answer that was cut may look like a plan: of fewer steps, or of half a change.
        problem = problem_of(raw, heard, takes.api) if isinstance(raw, AIMessage) else ""
        if not problem:
            problem = (
                problems(plan) if isinstance(plan, Plan) else str(answer["parsing_error"] or "it is no plan")
            )
        if isinstance(plan, Plan) and not problem:
            return plan
        # A new request instead of the raw answer: it may hold a tool call, which providers want answered.
        words = clipped(problem, 4_000)
        again = f"{request}\n\nYour last answer was not a valid plan: {words}"
        messages = [SystemMessage(PLANNER), HumanMessage(again)]
    raise NoPlanError(words)


async def _asked(structured: Any, messages: Sequence[BaseMessage]) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = await structured.ainvoke(messages)
    # Some clients validate before there is an answer to keep, whatever include_raw says.
    except (ValidationError, OutputParserException) as exc:
        found = None if (why := ended_early(exc)) else _plan_in(exc)
        return {"raw": None, "parsed": found, "parsing_error": why or exc}
    except Exception as exc:
        if why := ended_early(exc):
            return {"raw": None, "parsed": None, "parsing_error": why}
        raise
    return answer


def _plan_in(exc: Exception) -> Plan | None:
    """Return the plan of an answer with halves of characters, which pydantic does not read as JSON."""
    for text in texts_of(exc):
        try:
            return Plan.model_validate(well_formed_deeply(object_of(text)))
        except ValidationError:
            continue
    return None
