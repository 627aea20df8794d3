"""What clients and earlier versions left in a thread: the next request is one that each provider takes."""

import base64
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from server.agent.talk import APIS, Talk, first_then_done
from support.played_model import call
from support.providers import answer

PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100"
        "c9fe92ef0000000049454e44ae426082"
    )
).decode()
PDF = base64.b64encode(b"%PDF-1.4\n%%EOF\n").decode()
Begin = Callable[..., Talk]

IMAGES: dict[str, dict[str, Any]] = {
    "a front end's": {"type": "image", "mimeType": "image/png", "data": PNG},
    "langchain's": {"type": "image", "mime_type": "image/png", "base64": PNG},
    "langchain's old": {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": PNG},
    "chat completions'": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    "the Responses API's": {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
    "Anthropic's": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    "the AI SDK's": {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PNG}"},
    "the AI SDK's old": {"type": "image", "image": f"data:image/png;base64,{PNG}"},
    "with a wrong type": {"type": "image", "mimeType": "image/jpeg", "data": PNG},
    "wrapped": {"type": "non_standard", "value": {"type": "image", "mimeType": "image/png", "data": PNG}},
    "without its padding": {"type": "image", "mimeType": "image/png", "data": PNG.rstrip("=") + "\n"},
    "MCP's": {"type": "resource", "resource": {"uri": "file:///a.png", "mimeType": "image/png", "blob": PNG}},
}
PDFS: dict[str, dict[str, Any]] = {
    "a front end's": {
        "type": "file", "mimeType": "application/pdf", "data": PDF, "metadata": {"filename": "a.pdf"}
    },
    "chat completions'": {
        "type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}
    },
    "the Responses API's": {
        "type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"
    },
    "Anthropic's": {
        "type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}
    },
    "langchain's": {"type": "file", "mime_type": "application/pdf", "base64": PDF},
}  # fmt: skip


@pytest.mark.parametrize("api", APIS)
async def test_an_image_in_any_form_reaches_the_model(talk: Begin, api: str) -> None:
    """As that API writes images, once; and nothing is said about it."""
    for form, block in IMAGES.items():
        thread = talk(api, False, lambda _: AIMessage("Seen."))
        messages = await thread.say([{"type": "text", "text": "Look."}, block])
        assert [message.text for message in messages[1:]] == ["Seen."], form
        sent = json.dumps(thread.requests)
        assert sent.count(PNG.rstrip("=")) == 1, form
        assert "image/jpeg" not in sent


@pytest.mark.parametrize("api", APIS)
async def test_a_pdf_in_any_form_reaches_the_model(talk: Begin, api: str) -> None:
    """As that API writes files."""
    for form, block in PDFS.items():
        thread = talk(api, False, lambda _: AIMessage("Read."))
        messages = await thread.say([{"type": "text", "text": "Read."}, block])
        assert [message.text for message in messages[1:]] == ["Read."], form
        assert json.dumps(thread.requests).count(PDF.rstrip("=")) == 1, form


@pytest.mark.parametrize("api", APIS)
async def test_a_text_file_is_put_into_the_message(talk: Begin, api: str) -> None:
    """Every model reads text."""
    data = base64.b64encode("name,größe\n".encode()).decode()
    thread = talk(api, False, lambda _: AIMessage("Read."))
    await thread.say([{"type": "file", "mimeType": "text/csv", "data": data, "metadata": {"name": "a.csv"}}])
    assert "The file 'a.csv':\\nname,gr\\u00f6\\u00dfe" in json.dumps(thread.requests[0])


NO_MODEL_TAKES: dict[str, Any] = {
    "a video": {"type": "video", "mimeType": "video/mp4", "data": "AAAA"},
    "a word document": {"type": "file", "mimeType": "application/msword", "data": "AAAA"},
    "a broken image": {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
    "an image that is none": {"type": "image", "mimeType": "image/png", "data": "!!"},
    "an address of the browser's": {"type": "image", "url": "blob:http://app/1"},
    "a block of the front end's own": {"type": "widget", "state": {"a": [1]}},
    "a block without a type": {"kind": "x"},
    "a tool's result": {"type": "tool_result", "tool_use_id": "x", "content": "y"},
    "a text that is none": {"type": "text", "text": None},
    "an image without data": {"type": "image"},
    "an image of numbers": {"type": "image_url", "image_url": {"url": 5}},
}


@pytest.mark.parametrize("api", APIS)
async def test_what_no_model_takes_is_told_to_model_and_user(talk: Begin, api: str) -> None:
    """In words, in its place; the user is told once, and the thread goes on."""
    for form, block in NO_MODEL_TAKES.items():
        thread = talk(api, False, lambda _: AIMessage("Well."))
        messages = await thread.say([{"type": "text", "text": "Look."}, block])
        assert "Here stood a" in json.dumps(thread.requests[0]), form
        assert messages[1].text.startswith("The model was not given all of your message:"), form
        assert [message.text for message in (await thread.say())[3:]] == ["Go.", "Well."]


async def test_a_model_that_takes_text_alone_is_told_of_an_image(talk: Begin) -> None:
    """And so is the user; `MODEL_IMAGES` says so for models that langchain does not know."""
    for more, told in (({"MODEL": "openai:o3-mini"}, True), ({"MODEL_IMAGES": "off"}, True), ({}, False)):
        thread = talk("responses", False, lambda _: AIMessage("Well."), **more)
        messages = await thread.say([IMAGES["a front end's"]])
        assert ("this model takes no images" in json.dumps(thread.requests)) is told
        assert ("this model takes no images" in messages[1].text) is told


async def test_an_image_of_a_tool_stands_behind_all_results(talk: Begin) -> None:
    """Chat completions takes no images from tools."""
    thread = talk("chat", False, lambda _: AIMessage("Seen."))
    calls = call("run_command", command="a")
    shown = ToolMessage([IMAGES["a front end's"]], tool_call_id=calls.tool_calls[0]["id"] or "")
    await thread.agent.aupdate_state(thread.config, {"messages": [HumanMessage("x"), calls, shown]})
    assert (await thread.say())[-1].text == "Seen."
    assert [message["role"] for message in thread.requests[0]["messages"]][1:] == [
        "user", "assistant", "tool", "user", "user",
    ]  # fmt: skip


HALF = "\ud83d"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("api", APIS)
async def test_halves_of_characters_are_replaced(talk: Begin, api: str, streamed: bool) -> None:
    """From the human and in arguments of tools; two halves that stand together are joined."""
    code = f"print('a{HALF}b', {{'k{HALF}': 1}})"
    first = answer(f"So {HALF}", ("run_python", {"code": code}), ("run_command", {"command": f"echo {HALF}"}))
    thread = talk(api, streamed, first_then_done(first))
    messages = await thread.say(f"x{HALF}y {HALF}\ude00 z")
    results = [message.text for message in messages if isinstance(message, ToolMessage)]
    assert "a\ufffdb {'k\ufffd': 1}" in results[0]
    assert messages[-1].text == "Done."
    assert (await thread.say())[-1].text == "Done."
    assert "x\\ufffdy \\ud83d\\ude00 z" in json.dumps(thread.requests[0])
    json.dumps([message.model_dump() for message in messages[1:]], ensure_ascii=False).encode()


def reasoning(*more: dict[str, Any], **meta: Any) -> AIMessage:
    """Return a message of the Responses API that begins with an item of reasoning."""
    return AIMessage(
        [{"type": "reasoning", "id": "rs_1", "summary": []}, *more],
        response_metadata={"model_provider": "openai", **meta},
    )


CALL = {"name": "run_command", "args": {"command": "true"}, "id": "c1", "type": "tool_call"}
BROKEN = {"name": "run_command", "args": '{"command": "tr', "id": "c2", "error": None}
OLD: dict[str, list[BaseMessage]] = {
    "reasoning alone": [reasoning()],
    "reasoning alone, incomplete": [reasoning(status="incomplete")],
    "a refusal": [AIMessage([{"type": "refusal", "refusal": "No."}])],
    "a refusal beside": [AIMessage("", additional_kwargs={"refusal": "No."})],
    "nothing": [AIMessage("")],
    "no blocks": [AIMessage([])],
    "a call without its result": [AIMessage("", tool_calls=[CALL])],
    "a result without its call": [ToolMessage("x", tool_call_id="c9")],
    "an invalid call": [AIMessage("", invalid_tool_calls=[BROKEN])],
    "an invalid call beside a good one": [
        AIMessage("", tool_calls=[CALL], invalid_tool_calls=[BROKEN]), ToolMessage("x", tool_call_id="c1")
    ],
    "an invalid call without an id": [AIMessage("", invalid_tool_calls=[{**BROKEN, "id": None}])],
    "a call that was cut, in its block": [
        AIMessage(
            [{"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "run_command",
              "arguments": '{"command": "tr'}],
            tool_calls=[CALL], response_metadata={"model_provider": "openai"},
        )
    ],
    "a call by another name": [AIMessage("", tool_calls=[{**CALL, "name": "functions.run command:0"}])],
    "a call with a long id": [AIMessage("", tool_calls=[{**CALL, "id": "c" * 200}])],
    "a call with numbers that are none": [AIMessage("", tool_calls=[{**CALL, "args": {"n": float("nan")}}])],
    "thoughts of another provider": [
        AIMessage(
            [{"type": "thinking", "thinking": "x", "signature": "s"},
             {"type": "redacted_thinking", "data": "d"},
             {"type": "tool_use", "id": "c1", "name": "run_command", "input": {}}],
            tool_calls=[CALL], response_metadata={"model_provider": "anthropic", "stop_reason": "tool_use"},
        )
    ],
    "an unsigned thought": [
        AIMessage(
            [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "y"}],
            response_metadata={"model_provider": "anthropic", "stop_reason": "max_tokens"},
        )
    ],
    "reasoning of a response that is gone": [reasoning({"type": "text", "text": "Hi.", "id": "msg_1"})],
    "an image of the assistant": [AIMessage([{"type": "image_url", "image_url": {"url": "http://x/a.png"}}])],
    "instructions in between": [AIMessage("Hi."), SystemMessage("Be short.")],
    "a human with a name": [HumanMessage("Hi.", name="Jörg Müller <j@example.org>")],
    "a human without words": [HumanMessage("")],
    "a human without blocks": [HumanMessage([])],
    "blanks": [HumanMessage([{"type": "text", "text": " "}]), AIMessage(" ")],
    "halves of characters": [
        HumanMessage(HALF), AIMessage(HALF), AIMessage("", tool_calls=[{**CALL, "args": {"command": HALF}}])
    ],
    "OpenAI's own calls": [
        AIMessage("", additional_kwargs={"function_call": {"name": "x", "arguments": "{"}, "audio": {}})
    ],
}  # fmt: skip


@pytest.mark.parametrize("first", [HumanMessage("Hi."), None], ids=["begun by a human", "begun by others"])
@pytest.mark.parametrize("api", APIS)
async def test_a_thread_with_odd_messages_works_again(
    talk: Begin, api: str, first: HumanMessage | None
) -> None:
    """By each API, whoever wrote them; and once more in the turn behind that."""
    for kind, old in OLD.items():
        thread = talk(api, False, lambda _: AIMessage("Well."))
        seeded = [message.model_copy(deep=True) for message in ([first] if first else []) + old]
        await thread.agent.aupdate_state(thread.config, {"messages": seeded}, as_node="__start__")
        for _ in range(2):
            assert (await thread.say())[-1].text == "Well.", kind
        # What a provider refused may be sent once more, in plain words.
        refused = 1 if "gone" in kind and api == "responses" else 0
        assert len(thread.requests) <= 2 * (1 + refused), kind


@pytest.mark.parametrize("api", APIS)
async def test_a_run_without_a_word_of_the_human_works(talk: Begin, api: str) -> None:
    """Without any message, and behind one of the assistant."""
    for begin in ([], [AIMessage("How can I help?")]):
        thread = talk(api, False, lambda _: AIMessage("Well."))
        state = await thread.agent.ainvoke({"messages": begin}, thread.config)
        assert state["messages"][-1].text == "Well."


@pytest.mark.parametrize("there", APIS)
@pytest.mark.parametrize("here", APIS)
async def test_a_thread_goes_on_with_another_provider(talk: Begin, here: str, there: str) -> None:
    """Reasoning, calls and results of one are words and calls to the other, and back again."""
    answers = itertools.cycle([("run_command", {"command": "echo hi"}), None])

    def play(_: list[BaseMessage]) -> AIMessage:
        made = next(answers)
        return answer("I look.", made, thought="Hm", signature="c2ln") if made else answer("Done.")

    begun = talk(here, True, play)
    await begun.say()
    other = talk(there, True, play)
    messages = (await begun.agent.aget_state(begun.config)).values["messages"]
    await other.agent.aupdate_state(other.config, {"messages": messages}, as_node="__start__")
    assert (await other.say())[-1].text == "Done."
    assert not [request for request in other.requests if "error" in request]
