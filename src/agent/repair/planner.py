"""Asking the model for a plan until it is one."""

from collections.abc import Callable
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import ValidationError

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
    structured = model.with_structured_output(Plan, include_raw=True)
    messages: list[BaseMessage] = [SystemMessage(PLANNER), HumanMessage(request)]
    words = ""
    for _ in range(MAX_ASKS):
        try:
            answer: Any = await structured.ainvoke(messages)
        # Some clients validate before there is an answer to keep, whatever include_raw says.
        except (ValidationError, OutputParserException) as exc:
            answer = {"parsed": None, "parsing_error": exc}
        plan = answer["parsed"]
        problem = problems(plan) if isinstance(plan, Plan) else answer["parsing_error"] or "it is no plan"
        if isinstance(plan, Plan) and not problem:
            return plan
        # A new request instead of the raw answer: it may hold a tool call, which providers want answered.
        words = clipped(str(problem), 4_000)
        again = f"{request}\n\nYour last answer was not a valid plan: {words}"
        messages = [SystemMessage(PLANNER), HumanMessage(again)]
    raise NoPlanError(words)
