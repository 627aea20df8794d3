"""What web pages can do to a developer's server: `langgraph dev`, asked as browsers ask for them."""

import json
import re
from collections.abc import AsyncIterator

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from agent.scripted.bundled import bundled_project
from support.langgraph_dev import DevServer

EVIL = "https://evil.example"
STUDIO = "https://smith.langchain.com"
LOCAL = "http://localhost:3000"
NO_CORS = {
    "Content-Type": "text/plain;charset=UTF-8",
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "no-cors",
}
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,x-auth-scheme",
    # Older versions of Chromium ask this of servers on this machine.
    "Access-Control-Request-Private-Network": "true",
}


@pytest.fixture
async def browser(server: DevServer) -> AsyncIterator[httpx.AsyncClient]:
    """What sends a page's requests."""
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=60) as client:
        yield client


async def test_page_of_another_site_cannot_approve_a_plan(
    client: LangGraphClient, browser: httpx.AsyncClient
) -> None:
    """One simple POST needs no preflight: it is refused, nothing runs, and the question stays open."""
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "plan_execute", input={"project": bundled_project()})
    (question,) = (await client.threads.get_state(thread))["interrupts"]
    resume = {question["id"]: {"decisions": [{"type": "approve"}]}}
    attack = json.dumps({"assistant_id": "plan_execute", "command": {"resume": resume}})
    runs = len(await client.runs.list(thread))
    for headers in (
        NO_CORS | {"Origin": EVIL},
        NO_CORS | {"Origin": "null"},
        NO_CORS,
        {"Origin": EVIL, "Content-Type": "application/json"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Host": "evil.example:2024", "Content-Type": "application/json"},
        {"Host": "evil.example", "Origin": "http://evil.example", "Content-Type": "application/json"},
    ):
        for path in ("runs", "runs/wait", "runs/stream"):
            answer = await browser.post(f"/threads/{thread}/{path}", content=attack, headers=headers)
            assert answer.status_code in {403, 415}, (headers, path)
            assert "access-control-allow-origin" not in answer.headers
    assert len(await client.runs.list(thread)) == runs
    assert [one["id"] for one in (await client.threads.get_state(thread))["interrupts"]] == [question["id"]]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/runs/wait", {"assistant_id": "agent", "input": {}}),
        ("POST", "/runs/crons", {"assistant_id": "agent", "schedule": "* * * * *", "input": {}}),
        ("POST", "/threads", {}),
        ("POST", "/threads/search", {}),
        ("POST", "/assistants", {"graph_id": "agent"}),
        ("POST", "/mcp/", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ("POST", "/a2a/agent", {"jsonrpc": "2.0", "id": 1, "method": "message/send"}),
        ("POST", "/internal/truncate", None),
        ("POST", "/deploy", {}),
        ("GET", "/deploy", None),
        ("GET", "/info", None),
        ("GET", "/deployment", None),
        ("GET", "/openapi.json", None),
        ("POST", "/no/such/route", {}),
    ],
)
async def test_page_of_another_site_reaches_no_route(
    browser: httpx.AsyncClient, method: str, path: str, body: object
) -> None:
    """The server's own routes, MCP, A2A and the runtime's internal ones stand behind the same guard."""
    content = None if body is None else json.dumps(body)
    answers = [
        await browser.request(method, path, content=content, headers=headers)
        for headers in (NO_CORS | {"Origin": EVIL}, {"Host": "evil.example"}, NO_CORS)
    ]
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert "ALLOWED_ORIGINS" in answers[0].json()["detail"]
    assert "ALLOWED_HOSTS" in answers[1].json()["detail"]


async def test_page_of_another_site_opens_no_websocket(client: LangGraphClient, server: DevServer) -> None:
    """CORS does not know WebSockets: the origin is asked when one opens."""
    thread = (await client.threads.create())["thread_id"]
    address = f"{server.url.replace('http', 'ws')}/threads/{thread}/stream/events"
    for origin, headers in ((EVIL, {}), ("null", {}), (None, {"Host": "evil.example"})):
        with pytest.raises(InvalidStatus, match="403"):
            async with connect(address, origin=origin, additional_headers=headers, proxy=None):
                pass
    for origin in (LOCAL, STUDIO, None):
        async with connect(address, origin=origin, proxy=None) as socket:
            await socket.send("{}")
            assert "invalid_argument" in str(await socket.recv())


async def test_preflights_name_the_origin_that_may_call(browser: httpx.AsyncClient) -> None:
    """Studio's and a local front end's are answered, never with `*`; a foreign page gets no permission."""
    for origin in (STUDIO, "https://eu.smith.langchain.com", LOCAL):
        granted = await browser.options("/threads", headers=PREFLIGHT | {"Origin": origin})
        assert granted.status_code == 200
        assert granted.headers["access-control-allow-origin"] == origin
        assert granted.headers["access-control-allow-headers"] == "content-type,x-auth-scheme"
        assert granted.headers["access-control-allow-private-network"] == "true"
    refused = await browser.options("/threads", headers=PREFLIGHT | {"Origin": EVIL})
    assert refused.status_code == 403
    assert not [name for name in refused.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("origin", [STUDIO, LOCAL])
async def test_studio_and_local_front_ends_work_as_before(browser: httpx.AsyncClient, origin: str) -> None:
    """A thread is made, a run streams piece by piece, and the page may read what it needs."""
    headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    made = await browser.post("/threads", json={}, headers=headers)
    assert made.headers["access-control-allow-origin"] == origin
    assert "x-pagination-total" in made.headers["access-control-expose-headers"]
    question = {"messages": [{"role": "user", "content": "Hello"}]}
    body = {"assistant_id": "agent", "input": question, "stream_mode": ["values"]}
    pieces = 0
    run = f"/threads/{made.json()['thread_id']}/runs/stream"
    async with browser.stream("POST", run, json=body, headers=headers) as stream:
        assert stream.headers["access-control-allow-origin"] == origin
        async for _ in stream.aiter_raw():
            pieces += 1
    assert pieces > 1
    listed = await browser.get(f"/artifacts/{made.json()['thread_id']}", headers=headers)
    assert listed.json() == []


async def test_page_of_another_site_shows_a_signed_image_and_cannot_read_it(
    client: LangGraphClient, browser: httpx.AsyncClient
) -> None:
    """An `<img>` of a front end elsewhere gets the chart; the thread's list of artifacts stays shut."""
    thread = (await client.threads.create())["thread_id"]
    question = {"messages": [{"role": "user", "content": "Plot sin(x)"}]}
    state = await client.runs.wait(thread, "agent", input=question)
    tool = next(message for message in state["messages"] if message["type"] == "tool")
    found = re.search(r"!\[image 1\]\((\S+)\)", tool["content"])
    assert found
    page = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    assert (await browser.get(found[1], headers=page)).content.startswith(b"\x89PNG")
    script = await browser.get(found[1], headers={"Origin": EVIL, "Sec-Fetch-Site": "cross-site"})
    assert "access-control-allow-origin" not in script.headers
    listed = await browser.get(f"/artifacts/{thread}", headers=page)
    assert listed.status_code == 403
    rebound = await browser.get(found[1], headers={"Host": "evil.example"})
    assert rebound.status_code == 403
