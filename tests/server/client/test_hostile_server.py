"""The client before a server that is none: an error of its own tree, and bounds on what is read."""

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from agent.client import (
    ClientError,
    Driver,
    Limits,
    NotFoundError,
    ProtocolError,
    RefusedError,
    Server,
    UnreachableError,
)
from support.hostile_server import THREAD, HostileServer, serving

LIMITS = Limits(
    answer_bytes=2_000_000, answer_s=20, event_bytes=1_000_000, stream_bytes=3_000_000, values=100_000
)

# What the connection itself can make no sense of may pass, as of a server that starts.
UNREACHABLE = {"endless_headers", "another_protocol"}
# Some calls ask for no field that is wrong there.
MAY_PASS = {"nothing_right", "ids_that_are_none"}
KINDS = [
    "redirect",
    "page",
    "page_called_json",
    "words",
    "nothing",
    "null",
    "list_of_no_objects",
    "text",
    "deep_list",
    "deep_object",
    "many_values",
    "nothing_right",
    "ids_that_are_none",
    "compressed",
    "endless_answer",
    "endless_headers",
    "another_protocol",
]


async def started(server: Server) -> Any:
    """Start a run on a thread that is known."""
    return [event async for event in server.thread("agent", THREAD).start({})]


async def joined(server: Server) -> Any:
    """Follow the newest run of a thread that is known."""
    return [event async for event in server.thread("agent", THREAD).join()]


async def answered(server: Server) -> Any:
    """Answer a question of a thread that is known."""
    return [event async for event in server.thread("agent", THREAD).answer({"i": {}})]


def of_driver(ask: Callable[[Driver], Awaitable[Any]]) -> Callable[[Server], Awaitable[Any]]:
    """Return what asks something of a thread that is known."""
    return lambda server: ask(server.thread("agent", THREAD))


CALLS: dict[str, Callable[[Server], Awaitable[Any]]] = {
    "info": lambda server: server.info(),
    "graphs": lambda server: server.graphs(),
    "deployment": lambda server: server.deployment(),
    "new_thread": lambda server: server.new_thread("agent"),
    "graph_of": lambda server: server.graph_of(THREAD),
    "standing": lambda server: server.standing(THREAD),
    "threads": lambda server: server.threads(),
    "account": of_driver(lambda driver: driver.account()),
    "pending": of_driver(lambda driver: driver.pending()),
    "values": of_driver(lambda driver: driver.values()),
    "running": of_driver(lambda driver: driver.running()),
    "artifacts": of_driver(lambda driver: driver.files.artifacts()),
    "artifact": of_driver(lambda driver: driver.files.artifact("a.png")),
    "upload": of_driver(lambda driver: driver.files.upload("a", b"x")),
    "upload_project": of_driver(lambda driver: driver.files.upload_project(b"x")),
    "start": started,
    "join": joined,
    "answer": answered,
}


async def error_of(work: Awaitable[Any]) -> ClientError | None:
    """Return why something was not done; any other exception passes."""
    try:
        await work
    except ClientError as exc:
        return exc
    return None


@pytest.mark.parametrize("kind", KINDS)
async def test_answer_that_no_server_gives_is_an_error_of_the_clients_tree(kind: str) -> None:
    """Whatever is asked; nothing of it is read without a limit, and nothing is tried for a minute."""
    with (
        serving(HostileServer("nothing")) as elsewhere,
        serving(HostileServer(kind, elsewhere.url)) as server,
    ):
        async with Server(server.url, api_key="secret", limits=LIMITS) as client:
            for name, call in CALLS.items():
                error = await error_of(call(client))
                assert error or kind in MAY_PASS, f"{name} took it"
                if error:
                    usual = (ProtocolError, NotFoundError) if kind in MAY_PASS else ProtocolError
                    assert isinstance(error, UnreachableError if kind in UNREACHABLE else usual)
                    assert "\n" not in str(error)
                    assert len(str(error)) < 1000
        # What lies in the buffers of a connection comes on top.
        assert server.sent < len(CALLS) * 10 * LIMITS.answer_bytes
        assert not elsewhere.requests


async def test_sweep_is_not_told_that_a_thread_is_idle_by_a_server_that_does_not_say_so() -> None:
    """An idle thread's sandbox is ended: fields of a wrong kind say nothing of it."""
    with serving(HostileServer("nothing_right")) as server:
        async with Server(server.url) as client:
            with pytest.raises(ProtocolError, match="status"):
                await client.standing(THREAD)


async def test_refusal_without_an_end_is_a_refusal() -> None:
    """Its code is kept, and its page is not."""
    with serving(HostileServer("endless_refusal")) as server:
        async with Server(server.url) as client:
            with pytest.raises(RefusedError, match=r"500 Said \[500\]"):
                await client.info()
        assert server.sent < 20_000_000


async def test_answer_by_drips_is_given_up() -> None:
    """A byte now and then keeps a connection alive, and no command."""
    with serving(HostileServer("drips")) as server:
        async with Server(server.url, limits=Limits(answer_s=0.3)) as client:
            with pytest.raises(ProtocolError, match=r"not complete within 0\.3 s"):
                await client.info()


async def test_key_stays_with_its_server() -> None:
    """A redirect would carry it elsewhere; the error names where."""
    with serving(HostileServer("nothing")) as thief, serving(HostileServer("redirect", thief.url)) as server:
        async with Server(server.url, api_key="secret") as client:
            with pytest.raises(ProtocolError, match=f"redirect to {thief.url}/info, which is not followed"):
                await client.info()
        assert server.requests[0].headers["x-api-key"] == "secret"
        assert thief.requests == []


def event(data: Any, *, id: str = "1-0", kind: str = "custom") -> bytes:
    """Return an event of a stream."""
    return f"id: {id}\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode()


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (b"forever data: x", "an event is larger than 1,000,000 bytes"),
        (b"forever: sign of life\n\n" * 1000, "a stream is larger than 3,000,000 bytes"),
        (b"data: " + b"[" * 100_000 + b"\n\n", "no JSON"),
        (b"data: {no json\n\n", "no JSON"),
        (b'event: "\nevent: custom\ndata: ' + b"[" * 500 + b"]" * 500 + b"\n\n", "deeper"),
        (event({}, id="9" * 5000), "an event's id is none"),
        (event({}, id="\u00b2-\u00b2"), "an event's id is none"),
        (event({"run_id": "a b"}, kind="metadata"), "the run's id is no id"),
        (event({"run_id": 7}, kind="metadata"), "the run's id is no id"),
    ],
)
async def test_stream_that_no_server_sends_is_refused(stream: bytes, words: str) -> None:
    """With what is wrong with it; it is not joined again."""
    with serving(HostileServer("honest", stream=stream)) as server:
        async with Server(server.url, limits=LIMITS) as client:
            with pytest.raises(ProtocolError, match=words):
                await started(client)
        assert server.sent < 10 * LIMITS.stream_bytes
        assert len(server.requests) == 1


async def test_event_whose_fields_are_of_a_wrong_kind_has_none_of_them() -> None:
    """No view meets a kind that the event's class does not name."""
    wrong: list[Any] = [[], {}, 1e300, True, "9" * 5000, None, [{}], "\0\x1b"]
    names = (
        "phase",
        "message",
        "iteration",
        "step",
        "steps",
        "report",
        "mime",
        "size_bytes",
        "elapsed_s",
        "text",
    )
    kinds = ("progress", "tests", "artifact", "sandbox", "tool")
    stream = b"".join(
        event({"type": kind, "name": "n", "event": "end"} | dict.fromkeys(names, value))
        for kind in kinds
        for value in wrong
    )
    stream += b"".join(event(value, kind=kind) for kind in ("messages", "updates") for value in wrong)
    messages = [{"type": kind, "content": value} for kind in ("ai", "tool", "human") for value in wrong]
    stream += b"".join(event([message, 5], kind="messages") for message in messages)
    with serving(HostileServer("honest", stream=stream)) as server:
        async with Server(server.url) as client:
            events = await started(client)
    for each in events:
        for name, declared in type(each).__annotations__.items():
            if declared in ("int", "int | None", "str"):
                assert type(getattr(each, name)).__name__ in declared.replace("None", "NoneType"), each


async def test_artifact_that_is_larger_than_said_is_refused() -> None:
    """The list says how large it is."""
    said = {
        "mime": "image/png",
        "name": "a",
        "url": "http://x/artifacts/t/a?s=1",
        "title": "",
        "size_bytes": 9,
    }
    with serving(HostileServer("honest", artifact=(said, b"x" * 10))) as server:
        async with Server(server.url) as client:
            with pytest.raises(ProtocolError, match="has 10 bytes, and 9 were announced"):
                await client.thread("agent", THREAD).files.artifact("a")
    with serving(HostileServer("honest", artifact=(said, b"x" * 9))) as server:
        async with Server(server.url) as client:
            assert await client.thread("agent", THREAD).files.artifact("a") == b"x" * 9


@pytest.mark.parametrize(
    "address", ["http://[", "//evil/artifacts/\x00", "\x1b[2J", "http://evil/artifacts/../x"]
)
async def test_artifact_is_fetched_from_its_server_alone(address: str) -> None:
    """Whatever address the list gives."""
    said = {"mime": "image/png", "name": "a", "url": address, "title": "", "size_bytes": 9}
    with serving(HostileServer("honest", artifact=(said, b"x"))) as server:
        async with Server(server.url) as client:
            with suppress(ClientError):
                await client.thread("agent", THREAD).files.artifact("a")
        assert server.requests


async def test_list_of_threads_keeps_no_more_than_fits() -> None:
    """One question may be as long as an answer; those of many together are not kept."""
    asked = {"interrupts": [{"id": "i", "value": "x" * 3_000_000}]}
    with serving(HostileServer("many_that_wait", state=asked)) as server:
        async with Server(server.url) as client:
            found = await client.threads(limit=6)
    assert [bool(thread.pending) for thread in found] == [True, True, False, False, False, False]
    assert all("too long for a list" in thread.problem for thread in found[2:])
