"""The scripted model as a langchain chat model: streaming, tools, structured output."""

import json
from functools import reduce
from operator import add
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel

from agent.errors import ModelError
from agent.scripted import model as module
from agent.scripted.chat import chat
from agent.scripted.model import SCRIPTS, ScriptedChatModel
from agent.scripted.repair import repair
from support.scripted_rules import model_of_rules

RULES = """
- name: save
  when: {after: human, human: 'save (?P<text>.+)'}
  say: "I save it:  twice,\\nand say so. "
  call:
    - {tool: save, args: {text: "{{text}}", tags: [a, 1]}}
    - {tool: save, args: {text: "{{text}} again"}}
- name: saved
  when: {after: save, calls: {save: 2}}
  say: "Saved, it says: {{result}}"
- name: picked
  when: {human: colour}
  call: {tool: Colour, args: {name: red}}
"""


def save(text: str) -> str:
    """Save a text."""
    return f"kept {text}"


def other(text: str) -> str:
    """Do something else."""
    return text


class Colour(BaseModel):
    """A colour."""

    name: str


@pytest.fixture
def model() -> ScriptedChatModel:
    """Return a model with the rules above."""
    return model_of_rules(RULES)


def without_ids(message: Any) -> dict[str, Any]:
    """Return what two messages of the same answer share."""
    data = {"content": message.content, "usage": message.usage_metadata, "meta": message.response_metadata}
    return data | {"calls": [(call["name"], call["args"]) for call in message.tool_calls]}


@pytest.mark.parametrize("question", ["save my words", "anything else"])
async def test_streaming_adds_up_to_the_whole_answer(model: ScriptedChatModel, question: str) -> None:
    """All four ways of asking give the same text, calls, usage and metadata; streams in many pieces."""
    bound = model.bind_tools([save])
    whole = await bound.ainvoke(question)
    streamed = [chunk async for chunk in bound.astream(question)]
    assert len(streamed) > 5
    assert all(len(str(chunk.content)) < 20 for chunk in streamed)
    for message in (reduce(add, streamed), reduce(add, bound.stream(question)), bound.invoke(question)):
        assert without_ids(message) == without_ids(whole)
    assert whole.usage_metadata
    assert whole.usage_metadata["input_tokens"] > 0 < whole.usage_metadata["output_tokens"]
    assert whole.response_metadata["model_name"] == "scripted:inline"


async def test_call_arguments_arrive_in_pieces_under_their_index(model: ScriptedChatModel) -> None:
    """A client that shows calls as they are written gets the name first, then the JSON piece by piece."""
    pieces = [
        piece
        async for chunk in model.bind_tools([save]).astream("save " + "words " * 20)
        for piece in getattr(chunk, "tool_call_chunks", [])
    ]
    first = [piece for piece in pieces if piece["index"] == 0]
    assert [piece["name"] for piece in first if piece["name"]] == ["save"]
    assert len(first) > 5
    assert json.loads("".join(piece["args"] or "" for piece in first))["tags"] == ["a", 1]


def test_large_argument_is_not_cut_into_thousands_of_pieces(model: ScriptedChatModel) -> None:
    """A file of a megabyte costs about a hundred chunks, as merging them is not free."""
    assert len(list(model.bind_tools([save]).stream("save " + "x" * 1_000_000))) < 300


async def test_agent_works_with_it_until_it_answers(model: ScriptedChatModel) -> None:
    """In create_agent it calls tools in parallel, reads the results and ends."""
    result = await create_agent(model, [save]).ainvoke({"messages": [HumanMessage("save ink")]})
    assert [m.content for m in result["messages"] if isinstance(m, ToolMessage)] == [
        "kept ink",
        "kept ink again",
    ]
    assert result["messages"][-1].content == "Saved, it says: kept ink again"


async def test_each_turn_begins_with_the_last_human_message(model: ScriptedChatModel) -> None:
    """Calls and results of earlier turns do not count, so the same question works twice."""
    agent = create_agent(model, [save])
    first = await agent.ainvoke({"messages": [HumanMessage("save ink")]})
    second = await agent.ainvoke({"messages": [*first["messages"], HumanMessage("save paper")]})
    assert second["messages"][-1].content == "Saved, it says: kept paper again"


def test_call_ids_are_never_repeated(model: ScriptedChatModel) -> None:
    """The same answer given twice calls under new ids, as results are matched to calls by them."""
    bound = model.bind_tools([save])
    ids = [call["id"] for _ in range(2) for call in bound.invoke("save ink").tool_calls]
    assert len(set(ids)) == 4


async def test_structured_output_is_an_instance_of_the_schema(model: ScriptedChatModel) -> None:
    """`with_structured_output` is langchain's own, through a tool named like the schema."""
    assert await model.with_structured_output(Colour).ainvoke("a colour") == Colour(name="red")
    raw = await model.with_structured_output(Colour, include_raw=True).ainvoke("a colour")
    assert isinstance(raw, dict)
    assert raw["parsed"] == Colour(name="red")


def test_named_tool_choice_leaves_only_that_tool(model: ScriptedChatModel) -> None:
    """A forced choice is respected: rules that call another tool do not match."""
    assert model.bind_tools([save, other], tool_choice="save").invoke("save ink").tool_calls
    assert not model.bind_tools([save, other], tool_choice="other").invoke("save ink").tool_calls


def test_results_without_a_name_are_traced_to_their_call() -> None:
    """A tool message need not carry its tool's name; system prompts and block content are read too."""
    asked = AIMessage("", tool_calls=[{"name": "save", "args": {}, "id": "1"}])
    found = module.conversation(
        [
            SystemMessage("Be brief."),
            HumanMessage([{"type": "text", "text": "save ink"}]),
            asked,
            ToolMessage("kept", tool_call_id="1"),
            HumanMessage([{"type": "image", "url": "https://example.com/a.png"}]),
        ],
        frozenset(),
    )
    assert (found.system, found.human, found.newest) == ("Be brief.", "save ink", "save")
    assert found.calls["save"] == 1


@pytest.mark.parametrize("name", ["nobody", "../chat", ""])
def test_unknown_script_raises_an_error_that_lists_those_there_are(name: str) -> None:
    """A mistyped name is answered with what could have been meant."""
    with pytest.raises(ModelError, match="chat, repair"):
        ScriptedChatModel.from_script(name)


@pytest.mark.parametrize("name", SCRIPTS)
async def test_building_and_asking_never_block_the_loop(name: str) -> None:
    """A server builds the model and asks it on its event loop."""
    with blockbuster_ctx():
        model = ScriptedChatModel.from_script(name)
        assert [chunk async for chunk in model.astream("hello")]


def test_model_is_built_again_from_what_its_dump_names() -> None:
    """Its scripts are functions: the dump names them, and the name is all that is needed."""
    model = ScriptedChatModel.from_script("repair+chat")
    data = json.loads(model.model_dump_json())
    assert ScriptedChatModel.from_script(data["name"]).scripts == model.scripts


def test_several_scripts_make_one_model() -> None:
    """`repair+chat` serves both graphs; the first script is asked first."""
    both = ScriptedChatModel.from_script("repair+chat").scripts
    assert both == (repair, chat)


def test_a_turn_with_many_calls_gets_no_more() -> None:
    """A script that always calls cannot loop for ever."""
    model = model_of_rules([{"name": "again", "call": {"tool": "save"}}], max_calls=3)
    made = [AIMessage("", tool_calls=[{"name": "save", "args": {}, "id": str(n)}]) for n in range(3)]
    bound = model.bind_tools([save])
    assert bound.invoke([HumanMessage("go"), *made[:2]]).tool_calls
    last = bound.invoke([HumanMessage("go"), *made])
    assert not last.tool_calls
    assert "has no answer" in str(last.content)
