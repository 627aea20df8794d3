"""OpenAI's chat models, with two gaps of langchain-openai 1.7.4 closed where answers are read.

In an answer that is not streamed, arguments of a call that are JSON but no object fail the whole answer; and
in one that is streamed by chat completions, a refusal is dropped.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI

from agent.bounded import parsed_json
from agent.messages.answers import NOT_AN_OBJECT
from agent.messages.texts import object_of


class OpenAIChat(ChatOpenAI):
    """langchain's client, which keeps what a refusal says."""

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        made = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        choices = chunk.get("choices") or (chunk.get("chunk") or {}).get("choices") or []
        refusal = ((choices[0].get("delta") or {}) if choices else {}).get("refusal")
        if made and refusal:
            made.message.additional_kwargs["refusal"] = refusal
        return made


class AnswersClient(httpx.AsyncClient):
    """Hands out answers whose calls langchain-openai can read, or can tell that it cannot."""

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request; an answer that comes whole is looked at."""
        response = await super().send(request, **options)
        if options.get("stream") or b'"arguments"' not in response.content:
            return response
        try:
            answer = parsed_json(response.content)
        except ValueError:
            return response
        changed = [_marked(function) for function in _functions(answer)]
        return _with_content(response, json.dumps(answer).encode()) if any(changed) else response


def _functions(answer: Any) -> Iterator[dict[str, Any]]:
    """Yield what holds the arguments of each call, in an answer of either API."""
    yield from _objects(answer, "output")
    for choice in _objects(answer, "choices"):
        message = choice.get("message")
        for call in _objects(message, "tool_calls"):
            if isinstance(call.get("function"), dict):
                yield call["function"]


def _objects(value: Any, key: str) -> list[dict[str, Any]]:
    found = value.get(key) if isinstance(value, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _marked(function: dict[str, Any]) -> bool:
    """Mark arguments that are no object, so that they are not read as JSON; whether they were changed."""
    given = function.get("arguments")
    if isinstance(given, dict):  # some compatible servers send the object itself
        function["arguments"] = json.dumps(given)
        return True
    if not isinstance(given, str) or (given.strip() and object_of(given) is not None):
        return False
    function["arguments"] = f"{NOT_AN_OBJECT}{given}" if given.strip() else "{}"
    return True


def _with_content(response: httpx.Response, content: bytes) -> httpx.Response:
    headers = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name.lower() not in {"content-length", "content-encoding", "transfer-encoding"}
    ]
    made = httpx.Response(
        response.status_code,
        headers=headers,
        content=content,
        request=response.request,
        extensions=response.extensions,
        history=response.history,
    )
    made.elapsed = response.elapsed
    return made
