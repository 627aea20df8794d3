"""One wrong write of a client costs a thread of `agent` nothing: it can be read, and a new input works."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Send

from agent.errors import InputError
from server.agent.test_state_is_input import (
    APPROVE,
    WRONG,
    ask,
    config,
    make,
    openai,
    tool_texts,
)
from support.e2b_process import E2BLocal

__all__ = ["make", "openai"]

CALL = {"name": "list_files", "args": {}}
MANY = [CALL | {"id": f"call-{index}", "type": "tool_call"} for index in range(1_001)]
SENT = {"__type": "tool_call_with_context"}
ALL = RemoveMessage(id=REMOVE_ALL_MESSAGES)


async def works(agent: Any, thread: str) -> None:
    """Look that the thread can be read, and that a new input is asked about, approved and carried out."""
    assert (await agent.aget_state(config(thread))).values
    assert [one async for one in agent.aget_state_history(config(thread))]
    await ask(agent, thread)
    state = await agent.ainvoke(Command(resume=APPROVE), config(thread))
    assert "[[PASSED redacted]]" in tool_texts(state)[-1]


@pytest.mark.parametrize(
    "command",
    [
        Command(update={"messages": 5}),
        Command(update={"messages": [{"role": "nobody"}]}),
        Command(update={"messages": {"__overwrite__": 5}}),
        Command(update={"messages": {"type": "__overwrite__", "value": [5]}}),
        Command(update={"messages": {"__overwrite__": None}}, goto="model"),
        Command(update={"sandbox_id": "", "messages": 5}, resume=APPROVE),
        Command(update=5),
        Command(update={"__start__": 5}),
        Command(update={"__resume__": APPROVE}),
        Command(goto=[Send("tools", 5)]),
        Command(goto=[Send("tools", [])]),
        Command(goto=[Send("tools", [5])]),
        Command(goto=[Send("tools", [{"type": "tool_call"}])]),
        Command(goto=[Send("tools", {"messages": 5})]),
        Command(goto=[Send("tools", SENT)]),
        Command(goto=[Send("tools", SENT | {"tool_call": 5, "state": {}})]),
        Command(goto=[Send("tools", SENT | {"tool_call": CALL, "state": {}})]),
        Command(goto=[Send("tools", SENT | {"tool_call": CALL | {"id": "1"}, "state": 5})]),
        Command(goto=[Send("tools", SENT | {"tool_call": CALL | {"id": "1"}, "state": {"messages": 5}})]),
        Command(goto=[Send("model", {})]),
        Command(goto=["tools"] * 101),
        Command(update={"messages": [AIMessage("", tool_calls=MANY)]}, goto="tools"),
        Command(update={"messages": {"__overwrite__": [AIMessage("", tool_calls=MANY)]}}, goto="tools"),
        Command(goto=[Send("tools", MANY)]),
        Command(goto=[Send("tools", MANY[:20])] * 60),
        Command(goto=[Send("tools", {"messages": [AIMessage("", tool_calls=MANY[:20])]})] * 60),
    ],
    ids=lambda command: str(command)[:120],
)
async def test_command_that_cannot_be_applied_is_refused_before_it_is_kept(
    make: Callable[..., Any], command: Any
) -> None:
    """One clear error; the question stays open, and nothing ran."""
    agent, thread = make(), f"refused {str(command)[:120]}"
    await ask(agent, thread)
    with pytest.raises(InputError, match=r"command(\.update|\.goto| brings)"):
        await agent.ainvoke(command, config(thread))
    assert (await agent.aget_state(config(thread))).interrupts
    await works(agent, thread)


@pytest.mark.parametrize("messages", [5, [{"role": "nobody"}], {"__overwrite__": 5}], ids=str)
async def test_input_that_cannot_be_applied_is_refused_by_name(
    make: Callable[..., Any], messages: Any
) -> None:
    """The error names the key."""
    agent, thread = make(), f"input {messages}"
    with pytest.raises(InputError, match="input: `messages` cannot be used"):
        await agent.ainvoke({"messages": messages}, config(thread))
    await ask(agent, thread)


@pytest.mark.parametrize(
    "messages",
    [
        5,
        {"__overwrite__": [5]},
        {"__overwrite__": None},
    ],
    ids=str,
)
async def test_state_update_that_cannot_be_applied_is_refused(
    make: Callable[..., Any], messages: Any
) -> None:
    """`threads.update_state` fails, and the thread is as it was."""
    agent, thread = make(), f"updated {messages}"
    await ask(agent, thread)
    with pytest.raises((InputError, NotImplementedError, ValueError)):
        await agent.aupdate_state(config(thread), {"messages": messages}, as_node="model")
    await works(agent, thread)


@pytest.mark.parametrize(
    "update",
    [
        [("ask_first", []), ("ask_first", [])],
        [("jump_to", "x"), ("jump_to", "y")],
        [("sandbox_loss", {"__overwrite__": 1}), ("sandbox_loss", {"__overwrite__": 2})],
        {"thread_model_call_count": 1},
        [("work_began", 1.0), ("work_began", 2.0)],
        {"messages": [RemoveMessage(id="not there")]},
        {"sandbox_id": {"not": "an id"}},
        {"sandbox_id": "x" * 100_000},
        {"sandbox_id": "../../v2/sandboxes?x="},
        {"sandbox_id": "a\0b"},
        {"ask_first": 5},
    ],
    ids=lambda update: str(update)[:60],
)
async def test_key_may_be_written_again_and_again(make: Callable[..., Any], update: Any) -> None:
    """Beside wrong answers, which leave the question open with what was written beside them."""
    agent, thread = make(), f"again {str(update)[:60]}"
    await ask(agent, thread)
    for _ in range(2):
        with pytest.raises(InputError, match="that is no answer"):
            await agent.ainvoke(Command(resume=WRONG, update=update), config(thread))
    await works(agent, thread)


@pytest.mark.parametrize(
    "removals",
    [
        [ALL, RemoveMessage(id="human")],
        [ALL, HumanMessage("over"), ALL, RemoveMessage(id="human"), HumanMessage("over")],
        [RemoveMessage(id="human"), RemoveMessage(id="human")],
    ],
    ids=["of all and of one", "of all, twice", "of one, twice"],
)
async def test_removals_leave_nothing_but_messages(make: Callable[..., Any], removals: list[Any]) -> None:
    """Behind a removal of all messages, langgraph takes another for a message to keep."""
    agent, thread = make(), f"removals {removals}"
    await agent.ainvoke({"messages": [HumanMessage("look", id="human")]}, config(thread))
    await agent.ainvoke(Command(update={"messages": removals}, goto="model"), config(thread))
    left = (await agent.aget_state(config(thread))).values["messages"]
    assert not [one for one in left if isinstance(one, RemoveMessage)]
    await works(agent, thread)


@pytest.mark.parametrize(
    "written",
    [
        ToolMessage("x", tool_call_id="q", artifact={"artifacts": [5]}),
        ToolMessage("x", tool_call_id="q", artifact={"artifacts": None}),
        ToolMessage("x", tool_call_id="q", artifact={"artifacts": [{"name": "x"}]}),
        ToolMessage(
            "x", tool_call_id="q", artifact={"artifacts": [{"name": [], "mime": 5, "size_bytes": ""}]}
        ),
        AIMessage("", tool_calls=[CALL | {"id": None}, CALL | {"id": None}]),
        AIMessage("", tool_calls=[CALL | {"id": "same"}, CALL | {"id": "same"}]),
        AIMessage("", tool_calls=[CALL | {"id": ""}, CALL | {"id": ""}]),
    ],
    ids=lambda message: str(message)[:90],
)
async def test_message_that_a_client_wrote_can_be_sent_to_a_provider(
    make: Callable[..., Any], sandboxes: E2BLocal, written: Any
) -> None:
    """Forged artifacts show no image; calls without an id of their own get one."""
    agent, thread = make(MODEL_IMAGES="on"), f"forged {str(written)[:90]}"
    await agent.aupdate_state(config(thread), {"messages": [HumanMessage("over"), written]}, as_node="model")
    await works(agent, thread)


async def test_rule_that_is_none_does_not_keep_the_model_from_being_called(make: Callable[..., Any]) -> None:
    """The prompt names the tools that ask where state holds such."""
    agent = make()
    update = {"messages": [HumanMessage("over")], "ask_first": 5}
    state = await agent.ainvoke(Command(update=update, goto="model"), config("odd rule"))
    assert isinstance(state["messages"][-1], AIMessage)
