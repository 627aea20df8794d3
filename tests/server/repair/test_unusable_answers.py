"""Answers that cannot be used, in a repair: the planner's and those of the agent that carries out a step."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from agent.graphs.plan_execute import repair_graph
from agent.settings import Settings
from agent.wiring import sandbox_manager
from server.repair.conftest import MakeRepair
from support.e2b_process import E2BLocal
from support.providers import answer, provider
from support.repairs import ADD, APPROVE, DOUBLE, Mind, Repair, plan

WHOLE = plan(ADD, DOUBLE)
CUT = '{"summary": "Mend it.", "steps": [{"file": "calc.sh", "change": "rm -rf", "reason": "x"}'
UNUSABLE: dict[str, AIMessage] = {
    "cut": answer("", ("Plan", plan(ADD)), arguments=[CUT], stop="length"),
    "cut after all": answer("", ("Plan", plan(ADD)), stop="length"),
    "filtered": answer("", stop="content_filter"),
    "refused": answer("", refusal="I would rather not."),
    "empty": answer(""),
    "reasoning alone": answer("", stop="length"),
}


@pytest.fixture(params=["responses", "chat", "anthropic"])
def api(request: pytest.FixtureRequest) -> str:
    """Each of the APIs."""
    return str(request.param)


# openai's package warns of its own class where a structured answer is streamed.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("streamed", [False, True])
async def test_an_unusable_plan_is_asked_for_again(
    sandboxes: E2BLocal, monkeypatch: pytest.MonkeyPatch, api: str, streamed: bool
) -> None:
    """What is left of a plan that was cut is never shown for approval; after three the user reads why."""
    for kind, first in UNUSABLE.items():
        if api == "anthropic" and kind == "filtered":
            continue  # it has no filter of its own but refusals
        for plans, status in ([first, WHOLE], None), ([first], "failed"):
            mind = Mind(
                [each.model_copy(deep=True) if isinstance(each, AIMessage) else each for each in plans]
            )
            with provider(api, mind) as served:
                for name, value in served.env.items():
                    monkeypatch.setenv(name, value)
                env = {**sandboxes.env, **served.env, "DEPLOYMENT": "repair-tests"}
                if api == "anthropic":
                    env["MODEL"] = "anthropic:claude-haiku-4-5"  # newer ones cannot be made to call a tool
                settings = Settings.from_env(env)
                repair = Repair(repair_graph(settings, sandbox_manager(settings), InMemorySaver()), mind)
                given = {"project": {"run.sh": "exit 1\n"}, "test_command": "bash run.sh"}
                modes = ["messages", "custom"] if streamed else ["custom"]
                async for _ in repair.graph.astream(
                    given, repair.config, context=repair.context, stream_mode=modes
                ):
                    pass
                state = await repair.values()
            assert state["status"] == status, kind
            assert len(mind.asked) == (2 if status is None else 3), kind
            if status is None:
                assert state["plan"] == WHOLE
            else:
                words = {"refused": "refused", "filtered": "filter"}.get(kind, "cut off" if first else "")
                assert kind == "empty" or words in state["summary"], state["summary"]


async def test_a_cut_command_of_a_step_is_not_run(make_repair: MakeRepair, openai: Any) -> None:
    """The agent of the step is told, and makes it anew."""
    told: list[str] = []

    def act(request: str, since: list[BaseMessage]) -> AIMessage:
        if not since:
            cut = '{"command": "echo exit 0 > calc.sh; rm -rf tests'
            return answer("", ("run_command", {"command": ""}), arguments=[cut], stop="length")
        assert isinstance(since[-1], ToolMessage)
        told.append(since[-1].text)
        return AIMessage("Done.") if len(since) > 2 else answer("", ("run_command", {"command": ADD[1]}))

    repair = make_repair(plan(ADD, DOUBLE))
    repair.mind.act = act
    await repair.start()
    await repair.answer(APPROVE)
    assert "cut off" in told[0]
    assert "exit_code: 0" in told[1]
    assert "rm -rf" not in (await repair.values())["diff"]


async def test_a_step_without_a_word_is_reported_in_words(make_repair: MakeRepair) -> None:
    """So that the human reads why nothing was done."""
    repair = make_repair(plan(ADD))
    repair.mind.act = lambda *_: answer("", refusal="I would rather not.")
    await repair.start(limits={"tries": 1})
    state = await repair.answer(APPROVE)
    assert "The model refused to answer: I would rather not." in str(state["messages"])


async def test_halves_of_characters_in_a_plan_and_a_goal_are_replaced(make_repair: MakeRepair) -> None:
    """A plan has a digest, which they have not."""
    change = f"{ADD[1]}; : \ud83d"
    repair = make_repair(plan((ADD[0], change), DOUBLE))
    await repair.start(goal="Mend it\ud83d.")
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    assert state["plan"]["steps"][0]["change"] == change.replace("\ud83d", "\ufffd")
