"""Callers by MCP and A2A are told why a call failed.

The LangGraph server shows them the error of the run that it made for the call, and of that only the name of
its class (langgraph-api 0.16.7): an agent that reads `InputError` cannot mend its call. It makes the run by a
request to itself; what that one answers is worded here, so that the name is followed by the message. Programs
that send requests of their own get both as they are.
"""

import json

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.bounded import parsed_json
from agent.server.cross_site import in_process

_AWAITED = ("/runs/wait", "/join")
"""How the paths end that answer with what a run came to."""
_ERROR = b'{"__error__":'


class WordedErrors:
    """ASGI middleware, for all routes of the server."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; word the error in the answer to one of the server's own."""
        own = scope["type"] == "http" and in_process(scope)
        if not own or not scope["path"].endswith(_AWAITED):
            await self._app(scope, receive, send)
            return

        async def worded_send(message: Message) -> None:
            # The answer comes in one piece, after line feeds that keep the connection open.
            if message.get("body", b"").startswith(_ERROR):
                message = {**message, "body": worded(message["body"])}
            await send(message)

        await self._app(scope, receive, worded_send)


def worded(body: bytes) -> bytes:
    """Return what a run came to, with the message of its error behind the name; anything else as it is.

    Args:
        body: JSON, `{"__error__": {"error", "message"}}`.
    """
    try:
        answer = parsed_json(body)
    except ValueError:
        return body
    match answer:
        case {"__error__": {"error": str(name), "message": str(words)} as error} if words:
            return json.dumps({**answer, "__error__": {**error, "error": f"{name}: {words}"}}).encode()
    return body
