"""A conversation, before it begins, and where nothing of it was streamed."""

import json

import pytest

from agent.cli import exits
from agent.cli.approval import left_open
from agent.cli.chat import Chat, of_chat
from agent.cli.chat_view import ChatView
from agent.cli.jsonl import JsonView
from agent.cli.session import Session
from agent.client import Finished, Token
from support.sheet import Sheet
from support.thread_server import FakeServer


@pytest.mark.parametrize("graph", ["plan_execute", "another"])
def test_chat_refuses_a_thread_of_another_graph(server: FakeServer, session: Session, graph: str) -> None:
    """A message would start a run of that graph, and what the thread has come to would be lost."""
    server.thread["metadata"] = {"graph_id": graph}
    sheet = Sheet()
    chat = Chat(sheet, session, view=ChatView(sheet), decide=left_open(sheet), context={})
    assert chat.talk("t", "hello", {"a.txt": b"a"}) == exits.USAGE
    assert sheet.text == (
        f"Nothing was said: thread t belongs to the graph {graph}, and chat talks to agent. "
        "`sandbox-agent show t` shows it, `sandbox-agent resume t` goes on with it.\n"
    )
    assert server.asked == ["GET /threads/t"]


def test_message_to_a_thread_that_waits_is_not_sent_and_says_so(
    server: FakeServer, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody is there to answer; programs read what is asked as an object."""
    server.thread["metadata"] = {"graph_id": "agent"}
    server.waiting = {"t"}
    sheet = Sheet()
    chat = Chat(sheet, session, view=JsonView(), decide=left_open(sheet), context={})
    assert chat.talk("t", "hello") == exits.FAILED
    assert sheet.text.endswith("Waits for an answer: sandbox-agent resume t\nWhat you said was not sent.\n")
    assert json.loads(capsys.readouterr().out) == {
        "event": "interrupted",
        "interrupts": [{"id": "i", "value": {"ask": 1}}],
    }
    assert not any(asked.startswith("POST") for asked in server.asked)


def test_question_that_the_server_has_lost_is_asked_again_before_anything_is_said(
    server: FakeServer, session: Session
) -> None:
    """A message would take its place, here too: one run, without input."""
    server.thread["metadata"] = {"graph_id": "agent"}
    server.state |= {"tasks": [{"id": "s"}], "metadata": {"run_id": "r"}, "created_at": "2026-01-01"}
    server.run = {"run_id": "r", "status": "success"}
    sheet = Sheet()
    chat = Chat(sheet, session, view=ChatView(sheet), decide=left_open(sheet), context={})
    assert chat.talk("t", "hello") == exits.FAILED
    assert '{"ask": 1}' in sheet.text
    assert sheet.text.endswith("What you said was not sent.\n")
    assert [asked for asked in server.asked if asked.startswith("POST")] == ["POST /threads/t/runs/stream"]


def test_last_words_are_shown_where_none_were_streamed() -> None:
    """And only there: once is enough."""
    ended = Finished({"messages": [{"type": "human", "content": "6*7"}, {"type": "ai", "content": "42"}]})
    sheet = Sheet()
    view = ChatView(sheet)
    view.show(ended)
    assert sheet.text == "42\n"
    view.show(Token("forty-two", message_id="m", whole=False))
    view.show(ended)
    view.follow(None)
    assert sheet.text == "42\nforty-two\n"


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ({"content": [{"type": "reasoning"}]}, "The model gave no answer in words."),
        (
            {"content": "The model refused.", "response_metadata": {"no_answer": "refused"}},
            "The model refused.",
        ),
    ],
)
def test_run_without_an_answer_is_told_and_fails(last: dict[str, object], words: str) -> None:
    """By the exit code, too; also where another client's run left nothing but reasoning."""
    ended = Finished({"messages": [{"type": "human", "content": "Hi"}, {"type": "ai", **last}]})
    sheet = Sheet()
    ChatView(sheet).show(ended)
    assert sheet.text == f"{words}\n"
    assert of_chat(sheet, ended, "t") == exits.FAILED


def test_run_that_ends_with_calls_or_words_is_an_answer() -> None:
    """A limit may end a run at a call; words in blocks are words."""
    for last in (
        {"content": "", "tool_calls": [{"name": "x"}]},
        {"content": [{"type": "text", "text": "Hi"}]},
    ):
        ended = Finished({"messages": [{"type": "ai", **last}]})
        assert of_chat(Sheet(), ended, "t") == exits.OK
