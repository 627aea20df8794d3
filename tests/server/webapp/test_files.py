"""Who may put a file into a thread's sandbox, and when; what is refused reaches no sandbox."""

from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.server import files
from agent.server.files import file_routes

ADA = {"Authorization": "Bearer ada"}
THREAD = "019b0000-0000-7000-8000-000000000001"
FILE = f"/files/{THREAD}/a.csv"
OTHER = "019b0000-0000-7000-8000-000000000002"


class Threads:
    """One thread, as the server's own client shows it."""

    def __init__(self, status: str = "idle", graph: str | None = "agent", interrupts: Any = ()) -> None:
        self.status = status
        self.graph = graph
        self.interrupts = interrupts

    async def get(self, thread_id: str) -> dict[str, Any]:
        """Return the thread; there is only one."""
        if thread_id != THREAD:
            request = httpx.Request("GET", "http://server")
            raise httpx.HTTPStatusError("no", request=request, response=httpx.Response(404, request=request))
        return {"status": self.status, "metadata": {"graph_id": self.graph} if self.graph else {}}

    async def get_state(self, thread_id: str) -> dict[str, Any]:
        """Return its state."""
        return {"values": None, "interrupts": list(self.interrupts)}


async def put(threads: Threads, path: str, body: bytes = b"x", **headers: str) -> httpx.Response:
    """Send a file to a server without sandboxes, on which ada alone may change threads."""

    async def thread(request: Request) -> Response:
        return JSONResponse({}, 200 if request.headers.get("authorization") == ADA["Authorization"] else 403)

    manager: Any = None  # to touch it is an error
    routes = file_routes(manager, lambda: threads)
    served = Starlette(routes=[*routes, Route("/threads/{thread_id}", thread, methods=["PATCH"])])
    transport = httpx.ASGITransport(served)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        return await client.put(path, content=body, headers=headers or ADA)


@pytest.mark.parametrize(
    ("threads", "path", "code", "words"),
    [
        (Threads(), f"/files/{OTHER}/a.csv", 404, "no such thread"),
        (Threads("busy"), FILE, 409, "busy"),
        (
            Threads("interrupted", interrupts=[{"id": "i"}]),
            FILE,
            409,
            "waits for an answer",
        ),
        (Threads("error", interrupts=[{"id": "i"}]), FILE, 409, "waits for an answer"),
        (Threads(graph="plan_execute"), FILE, 409, "plan_execute"),
        (Threads(), f"/files/{THREAD}/..%2Fa.csv", 404, ""),
        (Threads(), f"/files/{THREAD}/%2E%2E", 422, "name of a file"),
        (Threads(), f"/files/{THREAD}/a%00b", 422, "name of a file"),
        (Threads(), f"/files/{THREAD}/{'a' * 256}", 422, "name of a file"),
    ],
)
async def test_file_is_refused_with_the_reason(threads: Threads, path: str, code: int, words: str) -> None:
    """Nothing reaches a sandbox that is worked in or asked about, and no path leads elsewhere."""
    answer = await put(threads, path)
    assert (answer.status_code, words in answer.text) == (code, True), answer.text


async def test_file_of_somebody_else_is_refused() -> None:
    """Who may not change the thread may not put files into its sandbox."""
    assert (await put(Threads(), FILE, authorization="Bearer eve")).status_code == 403


async def test_file_that_is_too_large_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """413, with the limit."""
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 10)
    answer = await put(Threads(), FILE, b"x" * 11)
    assert (answer.status_code, "at most 10 bytes" in answer.text) == (413, True)
