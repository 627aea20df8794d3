"""What a browser gets for an artifact's address, and what it cannot do with it."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest
from langgraph.store.memory import InMemoryStore
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.artifacts.routes import artifact_routes
from agent.artifacts.shelf import MAX_A_THREAD, MAX_BYTES, Shelf, ShelfFullError
from agent.server.signing import Signer
from agent.server.webapp import app
from agent.settings import Settings

SETTINGS = Settings.from_env({"ARTIFACT_KEY": "the key of the test", "PUBLIC_URL": "http://server"})
SIGNER = Signer(b"the key of the test", SETTINGS.artifact_ttl_s)
THREAD = "019b0000-0000-7000-8000-000000000001"
PNG = b"\x89PNG\r\n\x1a\n and so on"


@pytest.fixture
def shelf() -> Shelf:
    """A thread's artifacts in a store of the test's own."""
    return Shelf(InMemoryStore(), "thread-1")


@pytest.fixture
async def browser(shelf: Shelf) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the routes, on a server whose one reader is ada."""

    async def thread(request: Request) -> Response:
        allowed = request.headers.get("authorization") == "Bearer ada"
        return JSONResponse({}, 200 if allowed else 403)

    served = Starlette(
        routes=[*artifact_routes(SETTINGS, lambda: shelf.store), Route("/threads/{thread_id}", thread)]
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://server") as client:
        yield client


def address(name: str, thread: str = "thread-1", now: float | None = None) -> str:
    """Return a signed address."""
    return SIGNER.address("http://server", "artifact", thread, name, now=now)


async def test_an_image_is_served_as_what_it_is(browser: httpx.AsyncClient, shelf: Shelf) -> None:
    """An `<img>` without any header gets the bytes, with their type."""
    kept = await shelf.keep(PNG, "image/png")
    answer = await browser.get(address(kept["name"]))
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, PNG, "image/png")
    assert answer.headers["content-disposition"].startswith("inline")


@pytest.mark.parametrize("mime", ["text/html", "image/svg+xml", "application/pdf", "text/x-unheard-of"])
async def test_what_could_hold_scripts_is_a_download_in_a_sandbox(
    browser: httpx.AsyncClient, shelf: Shelf, mime: str
) -> None:
    """An HTML artifact cannot script the server's origin: not opened there, nor guessed to be a page."""
    kept = await shelf.keep(b"<script>fetch('/threads')</script>", mime)
    headers = (await browser.get(address(kept["name"]))).headers
    assert headers["content-disposition"].startswith("attachment")
    assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox;" in headers["content-security-policy"]
    assert "allow-scripts" not in headers["content-security-policy"]


async def test_a_wrong_an_expired_and_another_threads_address_are_refused(
    browser: httpx.AsyncClient, shelf: Shelf
) -> None:
    """403 each, and only what was validly signed hears that it expired."""
    name = (await shelf.keep(PNG, "image/png"))["name"]
    expired = await browser.get(address(name, now=0))
    assert (expired.status_code, "expired" in expired.text) == (403, True)
    for wrong in (
        f"/artifacts/thread-1/{name}",
        address(name)[:-3],
        address(name, thread="thread-2").replace("thread-2", "thread-1"),
        SIGNER.address("", "upload", "thread-1", name).replace("/uploads/", "/artifacts/"),
    ):
        answer = await browser.get(wrong)
        assert (answer.status_code, "not signed" in answer.text) == (403, True)


async def test_whoever_may_read_the_thread_gets_fresh_addresses(
    browser: httpx.AsyncClient, shelf: Shelf
) -> None:
    """The list is for those whom the server lets read the thread, and its addresses work."""
    await Shelf(shelf.store, THREAD).keep(PNG, "image/png", "a chart")
    assert (await browser.get(f"/artifacts/{THREAD}")).status_code == 403
    listed = (await browser.get(f"/artifacts/{THREAD}", headers={"Authorization": "Bearer ada"})).json()
    assert [(one["title"], one["size_bytes"]) for one in listed] == [("a chart", len(PNG))]
    assert (await browser.get(listed[0]["url"])).content == PNG


async def test_an_artifact_that_is_gone_is_not_found(browser: httpx.AsyncClient) -> None:
    """A valid address outlives what it names."""
    assert (await browser.get(address("0.png"))).status_code == 404


async def test_bytes_are_kept_once_and_within_limits(shelf: Shelf) -> None:
    """The same bytes are one item; what is too large or one too many is refused, and nothing is kept."""
    for _ in range(2):
        await shelf.keep(PNG, "image/png")
    assert len(await shelf.references()) == 1
    with pytest.raises(ShelfFullError, match="at most 5242880"):
        await shelf.keep(bytes(MAX_BYTES + 1), "image/png")
    for number in range(1, MAX_A_THREAD):
        await shelf.keep(str(number).encode(), "text/plain")
    with pytest.raises(ShelfFullError, match="50 artifacts"):
        await shelf.keep(b"one more", "text/plain")
    assert len(await shelf.references()) == MAX_A_THREAD
    await shelf.keep(PNG, "image/png")


def test_every_route_of_the_app_is_guarded() -> None:
    """The LangGraph server leaves an app's routes open: each must ask for a signature or a right itself."""
    for route in app.routes:
        assert isinstance(route, Route)
        guard = getattr(route.endpoint, "guarded_by", "")
        assert re.match(r"signature for \w+|right to \w+ the thread|the server's authentication", guard), (
            route.path
        )
