"""An answer counts in the run that carries it, and in no other."""

from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from agent.approvals.answers import AnswerWatch, answer_to


class State(TypedDict):
    """What the human said."""

    said: Any


class Asking:
    """A graph that asks; told to, it fails once it has an answer, which the checkpointer keeps."""

    def __init__(self, *callbacks: AnswerWatch) -> None:
        self.fails = False
        graph = StateGraph(State).add_node("ask", self.ask).add_edge(START, "ask").add_edge("ask", END)
        self.graph: Any = graph.compile(checkpointer=InMemorySaver()).with_config(callbacks=list(callbacks))
        self.config = {"configurable": {"thread_id": "one"}}

    async def ask(self, _: State) -> State:
        """Ask."""
        said = answer_to({"question": "Well?"}, str)
        if self.fails:
            raise RuntimeError("the process died")
        return {"said": said}

    async def run(self, given: Any) -> Any:
        """Run; return what was said, or None while the question is open."""
        state = await self.graph.ainvoke(given, self.config)
        return None if state.get("__interrupt__") else state["said"]


async def test_answer_that_an_earlier_run_carried_does_not_count() -> None:
    """The checkpointer gives it to a run without one; that run asks again, and a new one counts."""
    asking = Asking(AnswerWatch())
    assert await asking.run({"said": ""}) is None
    asking.fails = True
    with pytest.raises(RuntimeError):
        await asking.run(Command(resume="yes"))
    asking.fails = False
    for _ in range(3):
        assert await asking.run(None) is None
    assert await asking.run(Command(resume="no")) == "no"


@pytest.mark.parametrize("by_id", [True, False])
async def test_newest_of_several_answers_counts(by_id: bool) -> None:
    """Whether it is sent for the question's id or bare."""
    asking = Asking(AnswerWatch())
    await asking.run({"said": ""})
    asking.fails = True
    for said in ("yes", "perhaps"):
        with pytest.raises(RuntimeError):
            await asking.run(Command(resume=said))
        await asking.run(None)
    asking.fails = False
    (question,) = (await asking.graph.aget_state(asking.config)).interrupts
    answer = Command(resume={question.id: "no"} if by_id else "no")
    # An id that langgraph no longer knows is asked again, under one that it does.
    if await asking.run(answer) is None:
        (question,) = (await asking.graph.aget_state(asking.config)).interrupts
        assert await asking.run(Command(resume={question.id: "no"})) == "no"
    assert (await asking.graph.aget_state(asking.config)).values == {"said": "no"}


async def test_answer_counts_where_nobody_watches() -> None:
    """A graph without the callback works as langgraph does."""
    asking = Asking()
    await asking.run({"said": ""})
    assert await asking.run(Command(resume="yes")) == "yes"


async def test_watch_forgets_runs_that_have_ended() -> None:
    """Ended, failed or interrupted: nothing is kept of them."""
    watch = AnswerWatch()
    asking = Asking(watch)
    await asking.run({"said": ""})
    asking.fails = True
    with pytest.raises(RuntimeError):
        await asking.run(Command(resume="yes"))
    assert watch._runs == {}
