"""Answers of a model that cannot be carried out, by each API, streamed and not."""

from collections.abc import Callable

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from agent.client.events import NO_ANSWER
from agent.context import Context
from agent.messages.answers import MAX_UNUSABLE
from server.agent.talk import APIS, Talk, first_then_done
from support.providers import answer

CUT = '{"command": "mkdir -p keep/tmp; touch keep/precious; rm -rf keep'
RM = ("run_command", {"command": "rm"})
OPENAI = ["responses", "chat"]
BAD = ['{"code": "print(1)', '{"code": "1"}}', "{code: 1}", "[1]", '"text"', '{"code": NaN}', "1", "null"]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("api", APIS)
async def test_a_cut_answer_runs_none_of_its_calls(
    talk: Callable[..., Talk], api: str, streamed: bool
) -> None:
    """Whole calls beside the cut one do not run either; the model is told of each, and asked again."""
    first = answer("", ("list_files", {"path": "."}), RM, arguments=['{"path": "."}', CUT], stop="length")
    thread = talk(api, streamed, first_then_done(first))
    _, called, *results, last = await thread.say()
    assert thread.started == []
    assert isinstance(called, AIMessage)
    assert [result.tool_call_id for result in results] == [call["id"] for call in called.tool_calls]
    assert all("cut off" in result.text and result.status == "error" for result in results)
    assert last.text == "Done."
    assert (await thread.say())[-1].text == "Done."


@pytest.mark.parametrize("api", APIS)
async def test_a_stream_that_breaks_off_runs_nothing(talk: Callable[..., Talk], api: str) -> None:
    """Also where what came of the arguments is whole: more might have followed."""
    first = answer("", RM, arguments=['{"command": "rm -rf keep"}'], breaks_off=True)
    thread = talk(api, True, first_then_done(first))
    messages = await thread.say()
    assert thread.started == []
    assert "broke off" in messages[2].text
    assert messages[-1].text == "Done."


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("api", OPENAI)
async def test_a_call_that_cannot_be_read_gets_an_error(
    talk: Callable[..., Talk], api: str, streamed: bool, beside: bool
) -> None:
    """Each bad call is told what it was, a good one beside it runs, and the next turn works."""
    good, sent = ("run_command", {"command": "echo ran"}), '{"command": "echo ran"}'
    for bad in BAD:
        calls = [("run_python", {}), good] if beside else [("run_python", {})]
        first = answer("", *calls, arguments=[bad, sent][: len(calls)])
        thread = talk(api, streamed, first_then_done(first))
        messages = await thread.say()
        results = [message for message in messages if isinstance(message, ToolMessage)]
        assert [result.status for result in results] == ["error", "success"][: len(calls)], bad
        assert bad in results[0].text
        assert thread.started == (["run_command"] if beside else []), bad
        assert (await thread.say())[-1].text == "Done."


@pytest.mark.parametrize("api", OPENAI)
async def test_the_model_is_not_asked_without_end(talk: Callable[..., Talk], api: str) -> None:
    """After three unusable answers in a row the run ends and says so; a next turn begins anew."""
    thread = talk(api, True, lambda _: answer("", RM, arguments=[CUT]))
    for turn in (1, 2):
        last = (await thread.say())[-1]
        assert len(thread.requests) == turn * MAX_UNUSABLE
        assert "could not be run" in last.text
        assert isinstance(last, AIMessage)
        assert last.response_metadata[NO_ANSWER] == "unusable"


WORDLESS = {
    "reasoning alone": (answer(stop="length"), "before it came to an answer", "cut"),
    "refusal": (answer(refusal="I cannot help with that."), "refused to answer: I cannot", "refused"),
    "empty": (answer(), "no answer in words", "empty"),
    "filtered": (answer(stop="content_filter"), "content filter", "filtered"),
    "half a text": (answer("It is", stop="length"), "cut off", "cut"),
    "text that breaks off": (answer("It is", breaks_off=True), "broke off", "unfinished"),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("api", OPENAI)
@pytest.mark.parametrize("kind", WORDLESS)
async def test_an_answer_without_words_is_told_in_words(
    talk: Callable[..., Talk], api: str, streamed: bool, kind: str
) -> None:
    """The user reads why, programs find it in the metadata, and the next turn works."""
    first, words, why = WORDLESS[kind]
    if why == "unfinished" and not streamed:
        return  # what is not streamed comes whole or not at all
    thread = talk(api, streamed, first_then_done(first))
    last = (await thread.say())[-1]
    assert words in last.text
    assert isinstance(last, AIMessage)
    assert last.response_metadata[NO_ANSWER] == why
    assert (await thread.say())[-1].text == "Done."


@pytest.mark.parametrize("streamed", [False, True])
async def test_anthropics_refusals_and_thoughts_alone_are_told_in_words(
    talk: Callable[..., Talk], streamed: bool
) -> None:
    """A thought that was cut has no signature, and the API takes none without."""
    cases = [
        (answer(thought="Let me see", stop="length"), "before it came to an answer"),
        (answer("I would", RM, refusal="no"), "refused to answer"),
        (answer(thought="Well", signature="c2ln"), "no answer in words"),
    ]
    for first, words in cases:
        thread = talk("anthropic", streamed, first_then_done(first))
        assert words in (await thread.say())[-1].text
        assert thread.started == []
        assert (await thread.say())[-1].text == "Done."


async def test_a_call_that_cannot_be_read_is_not_asked_about(talk: Callable[..., Talk]) -> None:
    """Where calls wait for a human, one that cannot be read has its error at once."""
    thread = talk("chat", True, first_then_done(answer("", RM, arguments=[CUT])))
    assert (await thread.say(ask_first=["run_command"]))[-1].text == "Done."


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol:langchain_core._api.LangChainBetaWarning")
async def test_a_stream_of_events_is_read_strictly(talk: Callable[..., Talk]) -> None:
    """langchain's newer form of stream, which front ends ask for: nothing cut or unreadable runs in it."""
    for arguments in (CUT, "[1]"):
        thread = talk("responses", True, first_then_done(answer("", RM, arguments=[arguments])))
        run = await thread.agent.astream_events(
            {"messages": [HumanMessage("Go.")]}, thread.config, context=Context(), version="v3"
        )
        async for _ in run:
            pass
        _, _, result, last = await thread.messages()
        assert isinstance(result, ToolMessage)
        assert (result.status, last.text) == ("error", "Done.")
