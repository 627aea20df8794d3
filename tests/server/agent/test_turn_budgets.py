"""A budget is a turn's: a resumed run goes on with what was used, and a new input begins anew."""

from contextlib import aclosing
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command

from agent import budget
from agent.context import Context
from server.agent.conftest import MakeAgent
from server.agent.test_long_runs import RULES, Clock, config
from support.openai_server import OpenAIServer, start_openai_server
from support.scripted_rules import model_of_rules

AGAIN: Any = {"messages": [HumanMessage("again")]}
APPROVE: Any = Command(resume={"decisions": [{"type": "approve"}]})
MOST_ANSWERS = 12


@pytest.fixture
def openai() -> Any:
    """A model that calls a tool for ever."""
    with start_openai_server(model_of_rules(RULES, max_calls=500)) as server:
        yield server


async def approved_until_it_ends(agent: Any, thread: str, given: Any = AGAIN) -> tuple[dict[str, Any], int]:
    """Approve each call of a turn; return its last state and how many were approved."""
    context = Context(ask_first=["run_command"])
    state = await agent.ainvoke(given, config(thread), context=context)
    for answers in range(MOST_ANSWERS):
        if "__interrupt__" not in state:
            return state, answers
        state = await agent.ainvoke(APPROVE, config(thread), context=context)
    raise AssertionError(f"it went on after {MOST_ANSWERS} answers")


@pytest.mark.parametrize(
    ("limit", "answers"), [({"MAX_MODEL_CALLS": "3"}, 3), ({"MAX_TOOL_CALLS": "2"}, 2)], ids=str
)
async def test_counts_outlast_each_approval_of_a_turn_and_begin_anew_with_the_next(
    make_agent: MakeAgent, openai: OpenAIServer, limit: dict[str, str], answers: int
) -> None:
    """An approval is no new budget; after the end another input has a whole one."""
    agent = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna", **limit)
    thread = f"turn {limit}"
    for _ in range(2):
        state, approved = await approved_until_it_ends(agent, thread)
        assert "limit" in state["messages"][-1].text
        assert approved == answers


async def test_count_outlasts_a_run_that_goes_on_after_it_broke_off(
    make_agent: MakeAgent, openai: OpenAIServer
) -> None:
    """What a run that broke off had used is used: the one that goes on has the rest."""
    agent = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna", MAX_MODEL_CALLS="6")
    stream = agent.astream(AGAIN, config("broken"), context=Context(), stream_mode="updates")
    rounds = 0
    async with aclosing(stream) as parts:
        async for part in parts:
            rounds += "tools" in part
            if rounds == 3:
                break
    before = (await agent.aget_state(config("broken"))).values
    used = sum(message.type == "ai" for message in before["messages"])
    assert 0 < used < 6
    asked = len(openai.requests)
    state = await agent.ainvoke(None, config("broken"), context=Context())
    assert "limit" in state["messages"][-1].text
    assert len(openai.requests) - asked == 6 - used


async def test_working_time_is_summed_over_the_runs_of_a_turn(
    make_agent: MakeAgent, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run works a while: together they end the turn. An hour of a human's time does not."""
    clock = Clock(step_s=5)
    monkeypatch.setattr(budget, "time", clock)
    agent = make_agent(**openai.env, MODEL="openai:gpt-5.6-luna", MAX_RUN_S="60")
    context = Context(ask_first=["run_command"])
    state = await agent.ainvoke(AGAIN, config("sum"), context=context)
    answers = 0
    while "__interrupt__" in state:
        assert answers < MOST_ANSWERS
        clock.now += 3600
        state = await agent.ainvoke(APPROVE, config("sum"), context=context)
        answers += 1
    assert state["messages"][-1].text.startswith("I stopped: this run may work for 60 seconds")
    assert answers > 1
    again = await agent.ainvoke(AGAIN, config("sum"), context=context)
    assert "__interrupt__" in again
