"""Asking the model for a plan until it is one."""

from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import ValidationError

from agent.repair.plan import Plan
from agent.repair.prompts import PLANNER

MAX_ASKS = 3


async def propose(model: BaseChatModel, request: str) -> Plan | None:
    """Return a valid plan, or None when the model gave none in three asks.

    An invalid one is sent back with what is wrong with it.
    """
    structured = model.with_structured_output(Plan, include_raw=True)
    messages: list[BaseMessage] = [SystemMessage(PLANNER), HumanMessage(request)]
    for _ in range(MAX_ASKS):
        try:
            answer: Any = await structured.ainvoke(messages)
        # Some clients validate before there is an answer to keep, whatever include_raw says.
        except (ValidationError, OutputParserException) as exc:
            answer = {"parsed": None, "parsing_error": exc}
        if isinstance(answer["parsed"], Plan):
            return answer["parsed"]
        problem = answer["parsing_error"] or "no plan in the answer"
        # A new request instead of the raw answer: it may hold a tool call, which providers want answered.
        words = f"{request}\n\nYour last answer was not a valid plan: {problem}"
        messages = [SystemMessage(PLANNER), HumanMessage(words)]
    return None
