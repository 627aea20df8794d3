"""A local server that speaks OpenAI's two APIs, with a scripted model for a mind.

It serves `POST /v1/responses` and `POST /v1/chat/completions`, streamed and not, to the unmodified client
(`langchain_openai.ChatOpenAI`, or `openai` itself), and refuses what the real service refuses, with its
status and its error body: a wrong key, an unknown model or parameter, a malformed part, a call without an
answer, an answer without a call, reasoning torn from what followed it, a schema strict mode does not take,
half of a pair of surrogates. It can be made to write answers that are cut, filtered, refused, or break off.

What it mirrors: the request, response and event types of the installed `openai` package, which are generated
from OpenAI's specification, and OpenAI's guides; rules that neither states are worded after errors that users
reported in public, named where they stand. It was not compared with the real service. Left out: hosted tools,
files, conversations, background mode, log probabilities, rate limits.
"""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Any, Self

import uvicorn
from langchain_core.language_models import BaseChatModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from support.openai_api import chat, responses
from support.openai_api.errors import ApiError
from support.openai_api.events import events
from support.openai_api.history import Stored
from support.openai_api.mind import ask

Body = dict[str, Any]
API_KEY = "sk-test-key-of-the-local-server"


class OpenAIServer:
    """The running server; a context manager that stops it.

    Args:
        model: answers every request; a `ScriptedChatModel`.
        api_key: the one key it takes.
    """

    def __init__(self, model: BaseChatModel, api_key: str = API_KEY) -> None:
        self.api_key = api_key
        self.requests: list[Body] = []
        """The bodies of the requests so far, refused ones included."""
        self.paths: list[str] = []
        """The path of each of them."""
        self.failures: list[int] = []
        """Statuses that the next requests are refused with, as a service in trouble does."""
        self._model = model
        self._stored = Stored()
        self._socket = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(self._app(), log_config=None, lifespan="off", ws="none")
        self._server = uvicorn.Server(config)
        # The socket listens already: a client that is early waits in its queue.
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="openai-server", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The address for `OPENAI_BASE_URL`."""
        host, port = self._socket.getsockname()
        return f"http://{host}:{port}/v1"

    @property
    def env(self) -> dict[str, str]:
        """The two variables that point a client here."""
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": self.api_key}

    def stop(self) -> None:
        """Stop the server; calling it again is harmless."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _app(self) -> Starlette:
        routes = [
            Route("/v1/chat/completions", self._serve(self._chat), methods=["POST"]),
            Route("/v1/responses", self._serve(self._responses), methods=["POST"]),
            Route("/{path:path}", self._serve(self._nowhere), methods=["GET", "POST"]),
        ]
        return Starlette(routes=routes)

    def _serve(self, answer: Any) -> Any:
        async def endpoint(request: Request) -> Response:
            try:
                self._check_key(request.headers.get("authorization", ""))
                return await answer(request)  # type: ignore[no-any-return]
            except ApiError as error:
                return JSONResponse(error.body, error.status)

        return endpoint

    def _check_key(self, header: str) -> None:
        key = header.removeprefix("Bearer").strip()
        if not key:
            raise ApiError(
                "You didn't provide an API key. You need to provide your API key in an Authorization header "
                "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
                status=401,
            )
        if key != self.api_key:
            shown = f"{key[:3]}{'*' * max(0, len(key) - 7)}{key[-4:]}"
            raise ApiError(
                f"Incorrect API key provided: {shown}. You can find your API key at "
                "https://platform.openai.com/account/api-keys.",
                code="invalid_api_key",
                status=401,
            )

    async def _body(self, request: Request) -> Body:
        try:
            # As the service parses it: text that is text, numbers that are numbers.
            body = json.loads(await request.body(), parse_constant=_no_number)
            json.dumps(body, ensure_ascii=False).encode()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise ApiError("We could not parse the JSON body of your request.")
        self.requests.append(body)
        self.paths.append(request.url.path)
        if self.failures:
            raise ApiError(
                "The server had an error while processing your request.", status=self.failures.pop(0)
            )
        return body

    async def _chat(self, request: Request) -> Response:
        body = await self._body(request)
        chat.check_request(body)
        reply = await ask(self._model, chat.question(body))
        if body.get("stream"):
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chat.chunks(body, reply)]
            return _stream([*lines, *([] if reply.breaks_off else ["data: [DONE]\n\n"])])
        return _json(chat.completion(body, reply))

    async def _responses(self, request: Request) -> Response:
        body = await self._body(request)
        responses.check_request(body, self._stored)
        reply = await ask(self._model, responses.question(body, self._stored))
        output = responses.output_items(body, reply)
        response = responses.response(body, reply, output)
        sent = responses.all_items(body, self._stored)
        self._stored.keep(response["id"], sent, output, store=response["store"])
        if body.get("stream"):
            return _stream(
                f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                for event in events(response, breaks_off=reply.breaks_off)
            )
        return _json(response)

    async def _nowhere(self, request: Request) -> Response:
        raise ApiError(f"Invalid URL ({request.method} {request.url.path})", status=404)


def start_openai_server(model: BaseChatModel, *, api_key: str = API_KEY) -> OpenAIServer:
    """Start a server on a free loopback port; it answers from the moment this returns.

    Args:
        model: answers every request; a `ScriptedChatModel`.
        api_key: the one key it takes.

    Returns:
        The server: its address, what it was sent, and `stop()`; a context manager too.
    """
    return OpenAIServer(model, api_key)


def _json(answer: Body) -> Response:
    # In ASCII: a model may write halves of pairs of surrogates.
    return Response(json.dumps(answer), media_type="application/json")


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _stream(lines: Iterable[str]) -> StreamingResponse:
    async def content() -> AsyncIterator[str]:
        for line in lines:
            yield line
            await asyncio.sleep(0)  # a chunk of its own, as from a model that is still writing

    return StreamingResponse(content(), media_type="text/event-stream")
