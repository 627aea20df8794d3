"""Clients for the local server: the real one for each API, and one that sends a body as it is."""

from typing import Any

import httpx
from langchain_openai import ChatOpenAI

from support.openai_server import OpenAIServer

MODELS: dict[str, dict[str, Any]] = {
    "responses": {"model": "gpt-5.6-luna", "use_responses_api": True, "reasoning": {"effort": "high"}},
    "chat": {"model": "gpt-4.1", "use_responses_api": False},
}


def client(server: OpenAIServer, api: str, **options: Any) -> ChatOpenAI:
    """Return the real client for one of the APIs, "responses" or "chat"; it does not retry."""
    settings = {"base_url": server.url, "api_key": server.api_key, "max_retries": 0}
    return ChatOpenAI(**{**settings, **MODELS[api], **options})


def post(server: OpenAIServer, path: str, body: Any, key: str | None = None) -> httpx.Response:
    """Send a request as it is, with the right key unless another, or an empty one, is given."""
    key = server.api_key if key is None else key
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.post(f"{server.url}/{path}", json=body, headers=headers)
