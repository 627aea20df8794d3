"""A scripted server that tells of threads."""

import json
from typing import Any

import httpx

QUESTION = {"id": "i", "value": {"ask": 1}}


class FakeServer:
    """Mirrors the routes that tell of threads; keeps what was asked."""

    def __init__(self) -> None:
        self.thread: dict[str, Any] = {"status": "idle", "metadata": {"graph_id": "plan_execute"}}
        self.state: dict[str, Any] = {"values": {}, "interrupts": [], "created_at": None, "tasks": []}
        self.runs: list[dict[str, Any]] = []
        self.run: dict[str, Any] = {}
        self.listed: list[dict[str, Any]] = []
        self.waiting: set[str] = set()
        self.unreadable: set[str] = set()
        self.asked: list[str] = []

    def handle(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        path = request.url.path
        self.asked.append(f"{request.method} {path}")
        if path == "/threads/search":
            return httpx.Response(200, json=self._search(json.loads(request.content)))
        if path.endswith("/state"):
            return self._state(path.split("/")[2])
        if path.endswith("/stream"):  # of a run that has ended, and of which nothing is kept
            thread = path.split("/")[2]
            made = {"Content-Location": f"/threads/{thread}/runs/r"} if request.method == "POST" else {}
            self.waiting |= {thread} if made else set()  # a run that is started asks
            return httpx.Response(200, headers={"Content-Type": "text/event-stream", **made})
        if "/runs/" in path:
            return httpx.Response(200, json=self.run)
        return httpx.Response(200, json=self.runs if path.endswith("/runs") else self.thread)

    def _state(self, thread_id: str) -> httpx.Response:
        if thread_id in self.unreadable:
            return httpx.Response(400, json={"detail": "Unexpected message type: 'nobody'"})
        asks = {"interrupts": [QUESTION]} if thread_id in self.waiting else {}
        return httpx.Response(200, json=self.state | asks)

    def _search(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        newest = sorted(self.listed, key=lambda thread: str(thread["updated_at"]), reverse=True)
        fit = [thread for thread in newest if asked.get("status") in {None, thread["status"]}]
        start = asked.get("offset", 0)
        return fit[start : start + asked["limit"]]
