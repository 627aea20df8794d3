"""Which requests of browsers are served: the rule as a table, and what the guard lets be read."""

from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from agent.errors import SettingsError
from agent.server.cross_site import STUDIO, CrossSiteGuard, CrossSiteRule
from agent.settings import Settings

DEV = {
    "LANGSMITH_LANGGRAPH_API_VARIANT": "local_dev",
    "LANGGRAPH_API_URL": "http://127.0.0.1:2024",
    "E2B_API_URL": "http://127.0.0.1:3001",
    "E2B_SANDBOX_URL": "http://localhost:3002",
}
PLATFORM = {"LANGSMITH_LANGGRAPH_API_VARIANT": "cloud", "PUBLIC_URL": "https://agent.example.com/api"}
OWN = "127.0.0.1:2024"
JSON = ("content-type", "application/json")
BODY = ("content-length", "2")


def verdict(env: dict[str, str], method: str, *headers: tuple[str, str], **more: Any) -> int:
    """Return the status that a request is refused with, or 200."""
    rule = CrossSiteRule.of(Settings.from_env(env))
    raw = [(name.encode(), value.encode()) for name, value in headers]
    refusal = rule.refusal(more.pop("kind", "http"), method, Headers(raw=raw), **more)
    return refusal.status if refusal else 200


def from_origin(env: dict[str, str], origin: str, host: str = OWN) -> int:
    """Return the verdict on a POST of JSON by a page of an origin."""
    return verdict(env, "POST", ("host", host), ("origin", origin), JSON, BODY)


@pytest.mark.parametrize(
    "origin",
    [
        *sorted(STUDIO),
        "http://localhost:3000",
        "https://localhost",
        "http://127.0.0.1:5173",
        "http://[::1]:3000",
        "http://127.0.0.1:2024",
    ],
)
def test_rule_lets_studio_and_local_front_ends_act(origin: str) -> None:
    """The pages a developer works with need no setting."""
    assert from_origin(DEV, origin) == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        "http://smith.langchain.com",
        "https://smith.langchain.com.evil.example",
        "https://evil.smith.langchain.com",
        "https://smith.langchain.com:8443",
        "https://smith.langchain.com, https://evil.example",
        "http://localhost.evil.example",
        "http://localhost:3000.evil.example",
        "http://localhost:3000/",
        "http://localhost:3000\n",
        "http://user@localhost:3000",
        "ftp://localhost",
        "http://127.0.0.2:3000",
        "http://127.0.0.1.nip.io",
        "http://0.0.0.0:2024",
        # What e2b-local serves is a sandbox's, not the developer's.
        "http://8000-abc.localhost:3001",
        "http://127.0.0.1:3001",
        "http://localhost:3001",
        "http://localhost:3002",
        "chrome-extension://abcdef",
    ],
)
def test_rule_refuses_every_other_page(origin: str) -> None:
    """A foreign, opaque or lookalike origin changes nothing, nor does a page that a sandbox serves."""
    assert from_origin(DEV, origin) == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:2024", 200),
        ("LOCALHOST", 200),
        ("localhost.:9999", 200),
        ("[::1]:2024", 200),
        ("evil.example:2024", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.nip.io:2024", 403),
        ("localhost:2024@evil.example", 403),
        ("localhost/evil.example", 403),
        ("evil.localhost", 403),
        ("192.168.1.7:2024", 403),
        ("0.0.0.0:2024", 403),
        ("[::1", 403),
        ("localhost:x", 403),
        ("", 403),
    ],
)
def test_rule_answers_in_development_to_local_names_alone(host: str, status: int) -> None:
    """A name that leads here by DNS makes no page the server's own; a signed address does not help."""
    assert verdict(DEV, "GET", ("host", host)) == status
    assert verdict(DEV, "GET", ("host", host), signed=True) == status
    assert verdict(DEV, "GET", ("host", host), kind="websocket") == status
    assert verdict(DEV, "POST", ("host", host), ("origin", f"http://{host.lower()}"), JSON, BODY) == status


def test_rule_refuses_what_is_said_twice_or_not_at_all() -> None:
    """Two values may be read differently by others; without a Host nothing can be checked."""
    assert verdict(DEV, "GET") == 403
    assert verdict(DEV, "GET", ("host", OWN), ("host", "evil.example")) == 403
    twice = [("origin", "https://smith.langchain.com"), ("origin", "https://evil.example")]
    assert verdict(DEV, "POST", ("host", OWN), *twice, JSON) == 403


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("site", ["cross-site", "same-site", "unheard-of"])
def test_rule_refuses_requests_of_other_sites_that_name_no_origin(method: str, site: str) -> None:
    """An `<img>`, a `<script>` or a frame of a foreign page reads nothing and changes nothing."""
    assert verdict(DEV, method, ("host", OWN), ("sec-fetch-site", site), ("sec-fetch-mode", "no-cors")) == 403
    frame = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")]
    assert verdict(DEV, method, ("host", OWN), ("sec-fetch-site", site), *frame) == 403


def test_rule_lets_a_link_be_followed_and_a_signed_image_be_shown() -> None:
    """Reading alone: a form that another site sends is refused, also to a signed address."""
    page = [("host", OWN), ("sec-fetch-site", "cross-site")]
    link = [*page, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")]
    assert [verdict(DEV, method, *link) for method in ("GET", "POST")] == [200, 403]
    foreign = [*page, ("origin", "https://evil.example")]
    for image in ([*page, ("sec-fetch-mode", "no-cors")], foreign):
        assert [verdict(DEV, method, *image, signed=True) for method in ("GET", "HEAD")] == [200, 200]
        assert [verdict(DEV, method, *image, signed=True) for method in ("PUT", "POST")] == [403, 403]


def test_rule_serves_programs_as_before() -> None:
    """Without Origin and Sec-Fetch-Site nothing is asked, in development and on a platform."""
    for env, host in ((DEV, OWN), (PLATFORM, "10.0.3.4:8000"), (PLATFORM, "agent.example.com")):
        assert verdict(env, "GET", ("host", host)) == 200
        assert verdict(env, "POST", ("host", host), JSON, BODY) == 200
        assert verdict(env, "POST", ("host", host)) == 200
        assert verdict(env, "PUT", ("host", host), ("content-length", "9")) == 200
        assert verdict(env, "GET", ("host", host), kind="websocket") == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([JSON, BODY], 200),
        ([("content-type", "Application/JSON; charset=utf-8"), BODY], 200),
        ([("content-type", "application/cloudevents+json"), BODY], 200),
        ([("content-length", "0")], 200),
        ([("content-length", "0"), ("content-type", "application/x-www-form-urlencoded")], 200),
        ([("content-type", "text/plain"), BODY], 415),
        ([("content-type", "text/plain; x=application/json"), BODY], 415),
        ([("content-type", "application/json, text/plain"), BODY], 415),
        ([("content-type", "multipart/form-data; boundary=application/json"), BODY], 415),
        ([BODY], 415),
        ([("transfer-encoding", "chunked")], 415),
        ([("content-type", "text/plain")], 415),
    ],
)
def test_rule_wants_a_posted_body_to_be_json(headers: list[tuple[str, str]], status: int) -> None:
    """What a browser may post without asking (text, a form, no type at all) is not read as JSON."""
    assert verdict(DEV, "POST", ("host", OWN), *headers) == status


def test_rule_on_a_platform_lets_its_own_pages_act_and_no_foreign_ones() -> None:
    """Behind a proxy that renames the Host, PUBLIC_URL or the browser says which pages are its own."""
    assert from_origin(PLATFORM, "https://agent.example.com", "10.0.3.4:8000") == 200
    assert from_origin(PLATFORM, "https://other.example.com", "other.example.com:443") == 200
    proxied = [
        ("host", "10.0.3.4"),
        ("origin", "https://front.example.com"),
        ("sec-fetch-site", "same-origin"),
    ]
    assert verdict(PLATFORM, "POST", *proxied, JSON) == 200
    assert from_origin(PLATFORM, "https://evil.example", "agent.example.com") == 403
    assert from_origin(PLATFORM, "https://agent.example.com:8443", "10.0.3.4:8000") == 403


def test_rule_takes_what_the_settings_add() -> None:
    """Listed names and origins are served besides the usual ones; `*` is all of them."""
    listed = DEV | {"ALLOWED_HOSTS": "My-Machine, fe80::1", "ALLOWED_ORIGINS": "https://Chat.example.com:443"}
    assert from_origin(listed, "https://chat.example.com", "my-machine:2024") == 200
    assert from_origin(listed, "https://chat.example.com", "[fe80::1]:2024") == 200
    assert from_origin(listed, "https://smith.langchain.com") == 200
    assert from_origin(listed, "https://evil.example") == 403
    assert from_origin(listed, "https://chat.example.com", "evil.example") == 403
    everything = DEV | {"ALLOWED_HOSTS": "*", "ALLOWED_ORIGINS": "*"}
    assert from_origin(everything, "https://evil.example", "evil.example") == 200
    platform = PLATFORM | {"ALLOWED_HOSTS": "inner"}
    hosts = ("inner:8000", "agent.example.com", "evil.example")
    assert [verdict(platform, "GET", ("host", host)) for host in hosts] == [200, 200, 403]


def test_rule_answers_to_addresses_where_the_server_listens_on_all() -> None:
    """`langgraph dev --host 0.0.0.0` is reached by the machine's addresses, and by no unlisted name."""
    env = DEV | {"LANGGRAPH_API_URL": "http://0.0.0.0:2024"}
    hosts = ("192.168.1.7:2024", "0.0.0.0:2024", "[fe80::1]:2024", "evil.example:2024")
    assert [from_origin(env, f"http://{host}", host) for host in hosts] == [200, 200, 200, 403]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALLOWED_ORIGINS", "chat.example.com"),
        ("ALLOWED_ORIGINS", "https://chat.example.com/path"),
        ("ALLOWED_ORIGINS", "https://a.example,*"),
        ("ALLOWED_ORIGINS", "https://me@chat.example.com"),
        ("ALLOWED_ORIGINS", "https://chat.example.com:port"),
        ("ALLOWED_ORIGINS", "null"),
        ("ALLOWED_HOSTS", "https://agent.example.com"),
        ("ALLOWED_HOSTS", "agent.example.com:2024"),
        ("ALLOWED_HOSTS", "*.example.com"),
        ("ALLOWED_HOSTS", "a,,b"),
    ],
)
def test_settings_refuse_origins_and_hosts_that_are_none(name: str, value: str) -> None:
    """A list that would never match stops the start with one line."""
    with pytest.raises(SettingsError, match=f"{name}=.* cannot be used: must be"):
        Settings.from_env({name: value})


async def _answer(request: Request) -> Response:
    return PlainTextResponse("read")


def guarded(*signed: BaseRoute) -> httpx.AsyncClient:
    """Return a client of an app whose CORS allows every origin, as the LangGraph server's does."""
    app = Starlette(
        routes=[*signed, Route("/threads/{thread_id}", _answer, methods=["GET", "POST"])],
        middleware=[
            Middleware(CrossSiteGuard, rule=CrossSiteRule.of(Settings.from_env(DEV)), signed=signed),
            Middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["*"], allow_headers=["*"]),
        ],
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{OWN}")


async def test_guard_lets_the_calling_origin_alone_read() -> None:
    """Never `*`; who is refused gets no permission at all, and hears which setting to change."""
    async with guarded() as client:
        studio = await client.get("/threads/1", headers={"Origin": "https://smith.langchain.com"})
        evil = await client.get("/threads/1", headers={"Origin": "https://evil.example"})
    assert studio.headers["access-control-allow-origin"] == "https://smith.langchain.com"
    assert "Origin" in studio.headers["vary"]
    assert evil.status_code == 403
    assert "ALLOWED_ORIGINS" in evil.json()["detail"]
    assert not [name for name in evil.headers if name.startswith("access-control-")]


async def test_guard_shows_signed_addresses_to_all_and_lets_none_read_them() -> None:
    """One reading of the path for guard and handler: what is no such route is not open."""
    async with guarded(Route("/artifacts/{thread_id}/{name}", _answer)) as client:
        foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        image = await client.get("/artifacts/t/a.png", headers=foreign)
        assert (image.status_code, image.text) == (200, "read")
        assert not [name for name in image.headers if name.startswith("access-control-")]
        for path in ("/artifacts/t", "/artifacts/t/", "/artifacts//a.png", "/artifacts/t/../../threads/1"):
            assert (await client.get(httpx.URL(path), headers=foreign)).status_code == 403, path
        assert (await client.post("/artifacts/t/a.png", headers=foreign)).status_code == 403


async def test_guard_leaves_the_servers_calls_to_itself_alone() -> None:
    """The SDK's client in the process calls as `http://api`; a request cannot pretend to be one."""
    async with guarded() as client:
        app = client._transport.app  # type: ignore[attr-defined]
        inside = httpx.ASGITransport(app, root_path="/noauth")
        async with httpx.AsyncClient(transport=inside, base_url="http://api") as own:
            assert (await own.get("/noauth/threads/1")).status_code == 200
        assert (await client.get("/noauth/threads/1", headers={"Host": "api"})).status_code == 403


async def test_guard_refuses_a_websocket_before_it_opens() -> None:
    """With the reason where the server can send one, else closed."""
    guard = CrossSiteGuard(Starlette(), CrossSiteRule.of(Settings.from_env(DEV)))
    headers = [(b"host", OWN.encode()), (b"origin", b"https://evil.example")]
    for extensions, expected in (
        ({"websocket.http.response": {}}, ["websocket.http.response.start", "websocket.http.response.body"]),
        ({}, ["websocket.close"]),
    ):
        sent: list[Any] = []

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "websocket.connect"}

        scope = {"type": "websocket", "path": "/threads/1/stream/events", "headers": headers}
        await guard(scope | {"extensions": extensions}, receive, send)
        assert [message["type"] for message in sent] == expected
