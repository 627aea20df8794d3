"""A seal is no ticket: what a human approved once is carried out once, wherever a client shows it again."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command, Send

from server.agent.test_state_is_input import APPROVE, ask, config, make, openai, tool_texts

__all__ = ["make", "openai"]


def new_run(thread: str) -> Any:
    """Return the configuration of a run with an id of its own, as a server gives it."""
    return config(thread) | {"run_id": uuid.uuid4()}


async def approved(agent: Any, thread: str) -> dict[str, Any]:
    """Have a call approved and carried out; return the state in which it was."""
    await ask(agent, thread)
    await agent.ainvoke(Command(resume=APPROVE), new_run(thread))
    history = [one async for one in agent.aget_state_history(config(thread))]
    values: dict[str, Any] = next(one.values for one in history if one.values.get("approved_calls"))
    return values


@pytest.mark.parametrize("where", ["the same turn", "a later turn", "another thread"])
@pytest.mark.parametrize("way", ["tools", "sent", "ApprovalsMiddleware.after_model"])
async def test_approval_that_is_shown_again_runs_nothing(
    make: Callable[..., Any], where: str, way: str
) -> None:
    """Not past the question, nor with a state of its own; where it is asked, it is asked again at most."""
    agent, thread = make(), f"{where} {way}"
    values = await approved(agent, thread)
    if where == "a later turn":
        await agent.ainvoke({"messages": [HumanMessage("over")]}, new_run(thread))
    if where == "another thread":
        thread += " other"
        await agent.ainvoke({"messages": [HumanMessage("over")]}, new_run(thread))
    before = tool_texts((await agent.aget_state(config(thread))).values)
    called = next(one for one in values["messages"] if isinstance(one, AIMessage))
    shown = {key: values[key] for key in ("approved_calls", "ask_first", "ask_first_seal")}
    call = {"__type": "tool_call_with_context", "tool_call": called.tool_calls[0], "state": values}
    goto: Any = Send("tools", call) if way == "sent" else way
    update = shown | {"messages": [called.model_copy(update={"id": str(uuid.uuid4())})]}
    state = await agent.ainvoke(Command(update=update, goto=goto), new_run(thread))
    after = tool_texts(state)[len(before) :]
    assert all(text.startswith("error: this call needs a human's approval") for text in after)
    assert after or state.get("__interrupt__")
