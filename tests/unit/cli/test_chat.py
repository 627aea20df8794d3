"""A conversation, before it begins."""

import pytest

from agent.cli import exits
from agent.cli.approval import left_open
from agent.cli.chat import Chat
from agent.cli.chat_view import ChatView
from agent.cli.session import Session
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
