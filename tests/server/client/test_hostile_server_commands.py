"""Each command before a server that is none: a line, exit code 3, and nothing that a terminal would obey."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from support.hostile_server import THREAD, HostileServer, serving

KINDS = [
    "redirect",
    "page",
    "words",
    "nothing",
    "list_of_no_objects",
    "deep_list",
    "deep_object",
    "ids_that_are_none",
    "compressed",
    "another_protocol",
    "refusal_with_escapes",
]
COMMANDS = {
    "chat": ["chat", "hi"],
    "chat --thread": ["chat", "hi", "--thread", THREAD],
    "chat --json": ["chat", "hi", "--json"],
    "repair": ["repair", "."],
    "threads": ["threads"],
    "threads --waiting": ["threads", "--waiting"],
    "show": ["show", THREAD],
    "show --diff": ["show", THREAD, "--diff"],
    "show --json": ["show", THREAD, "--json"],
    "resume": ["resume", THREAD, "--yes"],
    "cancel": ["cancel", THREAD],
    "sandboxes list": ["sandboxes", "list"],
}
ENVIRONMENT = {"DEPLOYMENT": "d", "E2B_API_KEY": "k", "LANGGRAPH_API_KEY": "secret"}


@pytest.fixture(autouse=True)
def _signals_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give a command a project of one file, and take back the handlers that it sets."""
    (tmp_path / "a.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


def run(server: HostileServer, *arguments: str) -> Any:
    """Run a command against a server."""
    return CliRunner(env=ENVIRONMENT).invoke(app, [*arguments, "--server", server.url])


def assert_shows_nothing_hidden(text: str) -> None:
    """See that a terminal would only write what it is given."""
    assert all(each.isprintable() or each == "\n" for each in text), ascii(text)


@pytest.mark.parametrize("kind", KINDS)
def test_command_says_in_a_line_that_the_server_is_none(kind: str) -> None:
    """Whatever it asks; no traceback, and no request goes elsewhere."""
    with (
        serving(HostileServer("nothing")) as elsewhere,
        serving(HostileServer(kind, elsewhere.url)) as server,
    ):
        for name, arguments in COMMANDS.items():
            done = run(server, *arguments)
            assert_shows_nothing_hidden(done.output)
            assert "Traceback" not in done.output, name
            assert done.exit_code == 3, f"{name}: {done.output}"
            problems = [
                line for line in done.stderr.splitlines() + done.stdout.splitlines() if server.url in line
            ]
            assert 1 <= len(problems) <= 2, done.output
        assert not elsewhere.requests


@pytest.mark.parametrize("kind", [*KINDS, "nothing_right", "drips", "endless_continues"])
def test_doctor_says_that_the_server_is_none(kind: str) -> None:
    """Among what else it finds; it is there to look, so its exit code is about what is missing."""
    with (
        serving(HostileServer("nothing")) as elsewhere,
        serving(HostileServer(kind, elsewhere.url)) as server,
    ):
        environment = ENVIRONMENT | {"E2B_API_URL": server.url}
        done = CliRunner(env=environment).invoke(app, ["doctor", "--server", server.url])
        assert_shows_nothing_hidden(done.output)
        assert "Traceback" not in done.output
        assert done.exit_code == 1, done.output
        assert not elsewhere.requests


@pytest.mark.parametrize("graph", ["agent", "plan_execute"])
def test_state_of_wrong_kinds_is_shown_as_far_as_it_goes(graph: str) -> None:
    """A thread of another graph, or a broken one, may hold anything under the names that a view looks at."""
    wrong: list[Any] = [
        1,
        "x",
        [],
        [1, [], "x", None],
        {},
        {"a": {}},
        None,
        [{"type": [], "content": {"a": 1}}],
    ]
    names = ("messages", "status", "diff", "summary", "tests_before", "tests_after", "goal", "iteration")
    for value in wrong:
        asked = {"action_requests": value, "review_configs": value, "iteration": value, "notice": value}
        calls = [{"name": value, "args": value, "description": value}]
        steps = {"action_requests": [{"name": "x", "args": {"steps": value, "summary": value}}]}
        questions = [value, asked, {"action_requests": calls, "review_configs": calls}, steps]
        state = {
            "values": dict.fromkeys(names, value),
            "interrupts": [{"id": f"i{number}", "value": each} for number, each in enumerate(questions)],
        }
        with serving(HostileServer("honest", state=state, graph=graph)) as server:
            for arguments in (["show", THREAD], ["show", THREAD, "--json"], ["resume", THREAD], ["threads"]):
                done = run(server, *arguments)
                assert "Traceback" not in done.output, done.output
                assert done.exit_code in {0, 1}, done.output


@pytest.mark.parametrize("command", [["chat", "hi"], ["chat", "hi", "--json"], ["repair", ".", "--verbose"]])
def test_events_of_wrong_kinds_and_with_escapes_are_shown_as_far_as_they_go(command: list[str]) -> None:
    """No view meets what its event does not name; words are shown, and nothing in them is obeyed."""
    odd = "\x1b[2J\r\x9b1G\u202e\u2028[red]:smile:\x07"
    wrong: list[Any] = [odd, odd * 2000, [], {}, 1e300, True, None, [{}], {"code": odd}, {odd: odd}]
    names = (
        "phase",
        "message",
        "iteration",
        "step",
        "report",
        "mime",
        "name",
        "text",
        "args",
        "title",
        "url",
    )
    kinds = ("progress", "tests", "artifact", "sandbox", "tool", odd)
    events = [
        ("custom", {"type": kind, "event": event, "name": "run_python"} | dict.fromkeys(names, value))
        for kind in kinds
        for event in ("start", "output", "heartbeat", "end", "replaced", odd)
        for value in wrong
    ]
    for kind in ("ai", "AIMessageChunk", "tool", "human"):
        events += [("messages", [{"type": kind, "content": value, "id": value}, {}]) for value in wrong]
    events += [("error", {"error": odd, "message": odd * 2000})]
    stream = "".join(f"event: {kind}\ndata: {json.dumps(data)}\n\n" for kind, data in events)
    with serving(HostileServer("honest", stream=stream.encode())) as server:
        done = run(server, *command)
    assert done.exit_code == 3, done.output[-2000:]
    assert "Traceback" not in done.output
    assert_shows_nothing_hidden(done.output)
