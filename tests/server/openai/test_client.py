"""The real ChatOpenAI client through both APIs: text, streams, tools, structured answers."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import OpenAIRefusalError
from pydantic import BaseModel

from support.openai_server import OpenAIServer


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int


ADA = Person(name="Ada", age=36)


def test_invoke_returns_text_and_usage(model: ChatOpenAI) -> None:
    """A plain question is answered with text, an id and what it cost."""
    answer = model.invoke([SystemMessage("Be short."), HumanMessage("hello")])
    assert answer.text == "You said: hello"
    assert answer.usage_metadata
    assert answer.usage_metadata["total_tokens"] > 0
    assert answer.response_metadata["id"].startswith(("resp_", "chatcmpl-"))


def test_stream_arrives_in_pieces(model: ChatOpenAI) -> None:
    """A streamed answer is the same text in several chunks, usage in the sum."""
    chunks = list(model.stream("hello", stream_usage=True) if _is_chat(model) else model.stream("hello"))
    assert len([chunk for chunk in chunks if chunk.text]) == 3
    whole = _sum(chunks)
    assert whole.text == "You said: hello"
    assert whole.usage_metadata


async def test_astream_and_ainvoke_say_the_same(model: ChatOpenAI) -> None:
    """The asynchronous client gets the same answers."""
    chunks = [chunk async for chunk in model.astream("hello")]
    answer = await model.ainvoke("hello")
    assert _sum(chunks).text == answer.text == "You said: hello"


@pytest.mark.parametrize("streamed", [False, True])
def test_parallel_calls_come_back_answered(model: ChatOpenAI, streamed: bool) -> None:
    """Two calls of one message, both answered, lead to the final text; a further turn still passes."""
    bound = model.bind_tools([add])
    history: list[BaseMessage] = [HumanMessage("Do the sums")]
    asked: AIMessage = _sum(list(bound.stream(history))) if streamed else bound.invoke(history)
    assert [call["args"] for call in asked.tool_calls] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    history += [asked, *(add.invoke(call) for call in asked.tool_calls)]
    history.append(bound.invoke(history))
    assert history[-1].text == "The last one is 7."
    assert model.invoke([*history, HumanMessage("thanks")]).text == "You said: thanks"


def test_parallel_calls_can_be_turned_off(model: ChatOpenAI) -> None:
    """With `parallel_tool_calls=False` only the first call comes."""
    bound = model.bind_tools([add], parallel_tool_calls=False)
    assert len(bound.invoke("Do the sums").tool_calls) == 1


def test_tool_choice_none_calls_nothing(model: ChatOpenAI) -> None:
    """A tool that may not be called is not called."""
    assert not model.bind_tools([add], tool_choice="none").invoke("Do the sums").tool_calls


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output_is_the_model(model: ChatOpenAI, method: Any) -> None:
    """A pydantic model comes back filled in, by schema and by a forced call."""
    assert model.with_structured_output(Person, method=method).invoke("Who is Ada?") == ADA


async def test_structured_output_keeps_the_raw_message(model: ChatOpenAI) -> None:
    """With `include_raw` the message comes along, and no parsing error."""
    answer: Any = await model.with_structured_output(Person, include_raw=True).ainvoke("Who is Ada?")
    assert (answer["parsed"], answer["parsing_error"]) == (ADA, None)
    assert '"Ada"' in answer["raw"].text


def test_no_structured_answer_is_a_refusal(model: ChatOpenAI) -> None:
    """Where the script has no answer in the schema, the client sees a refusal."""
    with pytest.raises(OpenAIRefusalError, match="You said"):
        model.with_structured_output(Person).invoke("Who is Bob?")


def test_requests_are_recorded(openai: OpenAIServer, model: ChatOpenAI) -> None:
    """The server keeps what it was sent, and to which path."""
    model.bind_tools([add]).invoke("hello")
    path = "/v1/chat/completions" if _is_chat(model) else "/v1/responses"
    assert openai.paths == [path]
    assert openai.requests[0]["model"] == model.model_name


def _is_chat(model: ChatOpenAI) -> bool:
    return model.use_responses_api is False


def _sum(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole
