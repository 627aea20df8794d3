"""Conversations in which tool calls were left without an answer."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from agent.messages.pairing import INTERRUPTED, repaired


def calls(*ids: str) -> AIMessage:
    """Return a message that calls one tool per id."""
    return AIMessage("", tool_calls=[{"name": "run_python", "args": {}, "id": call_id} for call_id in ids])


def result(call_id: str) -> ToolMessage:
    """Return the answer to a call."""
    return ToolMessage("ok", tool_call_id=call_id)


def test_a_call_without_an_answer_gets_one_that_claims_nothing() -> None:
    """The missing answer stands right behind its call and says that the outcome is unknown."""
    messages = repaired([calls("a", "b"), result("a"), HumanMessage("and now?")])
    assert [m.type for m in messages] == ["ai", "tool", "tool", "human"]
    assert messages[1] == result("a")
    assert isinstance(messages[2], ToolMessage)
    assert (messages[2].tool_call_id, messages[2].content, messages[2].status) == ("b", INTERRUPTED, "error")


def test_a_sound_conversation_is_left_as_it_is() -> None:
    """Nothing is added, dropped or moved."""
    messages: list[AnyMessage] = [HumanMessage("x"), calls("a"), result("a"), AIMessage("done")]
    assert repaired(messages) == messages


MESSAGE = st.one_of(
    st.just(HumanMessage("x")),
    st.sampled_from("abc").map(result),
    st.lists(st.sampled_from("abcdef"), unique=True, max_size=3).map(lambda ids: calls(*ids)),
)


@given(st.lists(MESSAGE, max_size=8))
def test_each_call_has_exactly_one_answer_right_behind_it(messages: list[AnyMessage]) -> None:
    """Whatever the history: every call of a message is answered directly behind it, in order."""
    fixed = repaired(messages)
    for index, message in enumerate(fixed):
        if isinstance(message, AIMessage):
            ids = [call["id"] for call in message.tool_calls]
            behind = fixed[index + 1 : index + 1 + len(ids)]
            assert [m.tool_call_id for m in behind if isinstance(m, ToolMessage)] == ids
    total = sum(len(m.tool_calls) for m in fixed if isinstance(m, AIMessage))
    assert sum(isinstance(m, ToolMessage) for m in fixed) == total


def test_each_call_is_sent_with_an_id_of_its_own() -> None:
    """Calls without an id, and a second one of the same, keep their answers, in order."""
    bare = AIMessage("", tool_calls=[{"name": "run_python", "args": {}, "id": None}])
    answers = [ToolMessage(text, tool_call_id="a") for text in ("first", "second")]
    messages = repaired([calls("a", "a"), *answers, bare, calls("a", "")])
    made = [call["id"] for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]
    assert len(set(made)) == len(made) == 5
    assert all(made)
    answered = [m for m in messages if isinstance(m, ToolMessage)]
    assert [m.tool_call_id for m in answered] == made
    assert [m.content for m in answered[:2]] == ["first", "second"]
