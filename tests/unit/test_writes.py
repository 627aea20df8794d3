"""A compiled graph whose keys may be written again and again, and a check of what a run is begun with."""

import operator
from typing import Annotated, Any, NotRequired

import pytest
from langchain_core.messages import AnyMessage, HumanMessage, RemoveMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, _messages_delta_reducer, add_messages
from langgraph.types import Command, Overwrite, interrupt
from typing_extensions import TypedDict

from agent.approvals.answers import AnswerWatch
from agent.errors import InputError
from agent.writes import WriteCheck, enduring

THREAD: Any = {"configurable": {"thread_id": "one"}}
TWICE = {"__overwrite__": [HumanMessage("whole", id="whole")]}


class Plain(TypedDict, total=False):
    """Keys of each kind."""

    messages: Annotated[list[AnyMessage], add_messages]
    formatted: Annotated[list[AnyMessage], add_messages(format="langchain-openai")]  # type: ignore[call-arg]
    delta: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]
    total: Annotated[int, operator.add]
    last: str


class Asks(Plain):
    """What is needed."""

    needed: NotRequired[str]


async def ask(_: Asks) -> Plain:
    """Ask; an answer that is no text is refused."""
    return {"last": str(interrupt("Well?", response_schema=str))}


def made() -> Any:
    """Return a graph that asks."""
    graph = StateGraph(Asks).add_node("ask", ask).add_edge(START, "ask").add_edge("ask", END)
    return graph.compile(checkpointer=InMemorySaver())


def guarded() -> Any:
    """Return such a graph, guarded."""
    graph = enduring(made())
    return graph.with_config(callbacks=[AnswerWatch(WriteCheck(graph))])


@pytest.mark.parametrize("name", ["messages", "delta"])
@pytest.mark.parametrize(
    "value",
    [
        TWICE,
        Overwrite([HumanMessage("whole", id="whole")]),
        {"type": "__overwrite__", "value": [HumanMessage("whole", id="whole")]},
        [RemoveMessage(id="not there"), HumanMessage("whole", id="whole"), RemoveMessage(id="first")],
        [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("whole", id="whole"), RemoveMessage(id="first")],
    ],
    ids=str,
)
async def test_messages_may_be_replaced_and_removed_again_and_again(name: str, value: Any) -> None:
    """Beside two wrong answers, by an update of state and in a fork: nothing but messages is left."""
    graph = guarded()
    await graph.ainvoke({name: [HumanMessage("first", id="first")]}, THREAD)
    for _ in range(2):
        with pytest.raises(Exception, match="valid string"):
            await graph.ainvoke(Command(resume=5, update={name: value}), THREAD)
    assert (await graph.aget_state(THREAD)).values
    history = [one async for one in graph.aget_state_history(THREAD)]
    await graph.aupdate_state(history[-1].config, {name: value})
    await graph.aupdate_state(THREAD, {name: value}, as_node="ask")
    await graph.ainvoke({name: [HumanMessage("last", id="last")]}, THREAD)
    state = await graph.ainvoke(Command(resume="yes"), THREAD)
    assert ([one.id for one in state[name]], state["last"]) == (["whole", "last"], "yes")


@pytest.mark.parametrize("name", ["messages", "formatted", "delta"])
@pytest.mark.parametrize("value", [5, [5], {"role": "nobody"}, {"__overwrite__": 5}], ids=str)
async def test_messages_that_are_none_are_refused(name: str, value: Any) -> None:
    """By name, before anything is kept; the question stays open."""
    graph = guarded()
    await graph.ainvoke({"last": ""}, THREAD)
    with pytest.raises(InputError, match=rf"command\.update: `{name}` cannot be used"):
        await graph.ainvoke(Command(resume="yes", update={name: value}), THREAD)
    assert (await graph.aget_state(THREAD)).interrupts
    assert (await graph.ainvoke(Command(resume="yes"), THREAD))["last"] == "yes"


async def test_values_of_one_step_are_put_together_as_before() -> None:
    """A reducer's key takes all, another the last one; one that replaces the whole passes the others by."""
    graph = guarded()
    await graph.ainvoke({"total": 1}, THREAD)
    await graph.ainvoke(
        Command(resume="yes", update=[("total", 2), ("total", 3), ("needed", "a"), ("needed", "b")]), THREAD
    )
    values = (await graph.aget_state(THREAD)).values
    assert (values["total"], values["needed"]) == (6, "b")
    await graph.aupdate_state(THREAD, {"total": Overwrite(1)}, as_node="ask")
    assert (await graph.aget_state(THREAD)).values["total"] == 1


async def test_removal_of_a_message_that_is_there_is_no_mistake() -> None:
    """The check of an input knows no state, and refuses no removal for it."""
    graph = guarded()
    for name in ("messages", "delta"):
        await graph.ainvoke({name: [HumanMessage("first", id="first")]}, THREAD)
        state = await graph.ainvoke({name: [RemoveMessage(id="first")]}, THREAD)
        assert state[name] == []
    # In langgraph's other format messages lose their ids.
    await graph.ainvoke({"formatted": [HumanMessage("first", id="first")]}, THREAD)
    state = await graph.ainvoke({"formatted": [RemoveMessage(id="first")]}, THREAD)
    assert [one.text for one in state["formatted"]] == ["first"]


async def test_graph_that_is_guarded_stays_as_it_is() -> None:
    """The guarded one is a copy, also where it is guarded twice; as a part of another graph it works too."""
    graph = made()
    kinds = {name: type(channel) for name, channel in graph.channels.items()}
    twice = enduring(enduring(graph))
    assert {name: type(channel) for name, channel in graph.channels.items()} == kinds
    whole = StateGraph(Asks).add_node("part", twice).add_edge(START, "part").add_edge("part", END)
    parent: Any = whole.compile(checkpointer=InMemorySaver())
    await parent.ainvoke({"messages": [HumanMessage("first", id="first")]}, THREAD)
    state = await parent.ainvoke(Command(resume="yes"), THREAD)
    assert ([one.id for one in state["messages"]], state["last"]) == (["first"], "yes")


def test_messages_of_one_step_are_merged_at_once() -> None:
    """A message with 10,000 calls writes 10,000 results, each by itself: one by one it would take minutes."""
    channel = enduring(made()).channels["messages"].copy()
    merge, merged = channel.operator, []

    def counted(left: Any, right: Any) -> Any:
        merged.append(len(right))
        return merge(left, right)

    channel.operator = counted
    channel.update([[HumanMessage("first", id="first")]])
    channel.update([[HumanMessage(str(index), id=str(index))] for index in range(1_000)])
    channel.update([RemoveMessage(id="first"), [RemoveMessage(id="7")], HumanMessage("last", id="last")])
    assert merged == [1, 1_000, 3]
    assert [one.id for one in channel.get()] == [
        *(str(index) for index in range(1_000) if index != 7),
        "last",
    ]
