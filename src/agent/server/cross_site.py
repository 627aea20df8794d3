"""Which requests of web browsers are served: no page of a foreign origin acts for the person before it.

`langgraph dev` asks nobody who they are: whoever reaches it may do everything, and every page that is open in
a browser on the same machine reaches it. CORS does not prevent that: a POST with a body of text and a
WebSocket are sent without asking, and a name of the page's own that leads to 127.0.0.1 (DNS rebinding) makes
the server part of the page's own origin. So each request is judged, also those to the LangGraph server's own
routes, by what a browser says of it and a page cannot change: `Host`, `Origin` and `Sec-Fetch-Site`.
Programs send no origin and are not asked for one.

Source: https://fetch.spec.whatwg.org/#origin-header and https://www.w3.org/TR/fetch-metadata/.
"""

import ipaddress
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.setting_types import origin_of
from agent.settings import Settings

STUDIO = frozenset(f"https://{region}smith.langchain.com" for region in ("", "eu.", "apac.", "aws."))
"""Studio in each region of LangSmith. Source: `langsmith.utils.get_host_url`."""

# No other address of 127.0.0.0/8 and no name below .localhost: e2b-local serves programs of sandboxes there.
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_LOOPBACK_ORIGIN = re.compile(r"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::(\d{1,5}))?")
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json")
_IN_PROCESS = "/noauth"
"""Root path of the server's calls to itself, as its own authentication knows them; no request can set it."""
_SHOWN = 200

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not served.

    Args:
        status: 403, or 415 for a body that is not said to be JSON.
        detail: what happened and what to do.
    """

    status: int
    detail: str


@dataclass(frozen=True, slots=True)
class CrossSiteRule:
    """Judges requests by their headers; no I/O.

    Args:
        hosts: names and addresses that the server answers to, in lower case; None for all.
        any_address: whether it also answers to every IP address, which no page's name can become.
        origins: whose pages may call, besides those of localhost and of the server itself; None for all.
        foreign_ports: ports of localhost whose pages are not the user's own.
    """

    hosts: frozenset[str] | None
    any_address: bool
    origins: frozenset[str] | None
    foreign_ports: frozenset[int] = frozenset()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the rule of a deployment."""
        own = [address for address in (settings.public_url, settings.served_at) if address]
        names = {urlsplit(address).hostname or "" for address in own}
        services = (settings.e2b_api_url, settings.e2b_sandbox_url)
        hosts, origins = _listed(settings.allowed_hosts), _listed(settings.allowed_origins)
        enforced = settings.in_development or settings.allowed_hosts is not None
        return cls(
            hosts=_LOOPBACK | names | hosts if enforced and hosts is not None else None,
            # `langgraph dev --host 0.0.0.0` is reached by whatever addresses the machine has.
            any_address=bool(names & {"0.0.0.0", "::"}),
            origins=None if origins is None else STUDIO | {origin_of(each) for each in own} | origins,
            foreign_ports=frozenset(port for each in services if each and (port := _port(each))),
        )

    def refusal(self, kind: str, method: str, headers: Headers, *, signed: bool = False) -> Refusal | None:
        """Say why a request is refused, or None.

        Args:
            kind: `http` or `websocket`.
            method: in upper case; of no meaning for a WebSocket.
            headers: all of them, as they came.
            signed: whether the route asks for a signed address, which is its own permission to read.
        """
        if (host := self._host(headers)) is None:
            return Refusal(
                403,
                f"This server does not answer to the name {_shown(headers.get('host', ''))}. If that name is "
                "yours, add it to ALLOWED_HOSTS.",
            )
        reads = kind == "http" and method in {"GET", "HEAD"}
        if not (reads and signed) and (refused := self._foreign(headers, host, reads=reads)):
            return refused
        if method == "POST" and _has_body(headers) and not _JSON.fullmatch(_media_type(headers)):
            return Refusal(415, "Send the body as JSON with the header `Content-Type: application/json`.")
        return None

    def allows_origin(self, headers: Headers) -> bool:
        """Whether the page that a request comes from may read the answer."""
        host = self._host(headers)
        return host is not None and "origin" in headers and self._foreign(headers, host, reads=False) is None

    def _host(self, headers: Headers) -> str | None:
        """Return the header `Host`, or None where the server does not answer to it."""
        given = headers.getlist("host")
        if self.hosts is None:
            return given[0] if given else ""
        if len(given) != 1 or (name := _host_name(given[0])) is None:
            return None
        return given[0] if name in self.hosts or (self.any_address and _is_address(name)) else None

    def _foreign(self, headers: Headers, host: str, *, reads: bool) -> Refusal | None:
        site = headers.get("sec-fetch-site", "none")
        origins = headers.getlist("origin")
        if not origins:
            # Also `same-site`: a port or a neighbouring name with a page of somebody else's.
            opened = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == (
                "navigate",
                "document",
            )
            if site in {"none", "same-origin"} or (reads and opened):
                return None
            return Refusal(403, "This server is not read by pages of another site. Open the address itself.")
        origin = origins[0]
        if len(origins) == 1 and (self._allowed(origin) or site == "same-origin" or _is_of(origin, host)):
            return None
        return Refusal(
            403,
            f"Pages of {_shown(origin)} may not call this server. "
            + (
                "Serve the page from an address, such as http://localhost:3000."
                if origin == "null"
                else "If they are yours, add this origin to ALLOWED_ORIGINS."
            ),
        )

    def _allowed(self, origin: str) -> bool:
        if self.origins is None or origin in self.origins:
            return True
        local = _LOOPBACK_ORIGIN.fullmatch(origin)
        return local is not None and (not local[1] or int(local[1]) not in self.foreign_ports)


class CrossSiteGuard:
    """ASGI middleware that refuses by the rule, and lets no other origin than the caller's read an answer.

    Nothing is buffered. As the first middleware of `http.app` it stands before all routes of the server.

    Args:
        app: what is guarded.
        rule: judges.
        signed: routes that ask for a signed address: reading from them is open to pages of all origins.
    """

    def __init__(self, app: ASGIApp, rule: CrossSiteRule, signed: Sequence[BaseRoute] = ()) -> None:
        self._app = app
        self._rule = rule
        self._signed = signed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse."""
        if scope["type"] not in {"http", "websocket"} or in_process(scope):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        signed = any(route.matches(scope)[0] is Match.FULL for route in self._signed)
        refusal = self._rule.refusal(scope["type"], scope.get("method", ""), headers, signed=signed)
        if refusal is not None:
            _log.warning(
                "%s %s refused: %s", scope.get("method", "WS"), _shown(scope["path"]), refusal.detail
            )
            await _refuse(refusal, scope, receive, send)
            return
        if "origin" not in headers:
            await self._app(scope, receive, send)
            return
        reader = headers["origin"] if self._rule.allows_origin(headers) else None
        await self._app(_without_private_network(scope), receive, _for_reader(send, reader))


def signed_routes(routes: Sequence[BaseRoute]) -> list[BaseRoute]:
    """Return those of the routes that ask for a signed address."""
    return [
        route
        for route in routes
        if isinstance(route, Route) and getattr(route.endpoint, "guarded_by", "").startswith("signature")
    ]


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    response = JSONResponse({"detail": refusal.detail}, refusal.status, {"Cache-Control": "no-store"})
    await response(scope, receive, send)


def _for_reader(send: Send, reader: str | None) -> Send:
    """Make an answer readable for one origin, where the server says for all; for none where that is None."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message.get("headers", [])))
            if reader is None:
                for name in [name for name in headers if name.startswith("access-control-")]:
                    del headers[name]
            elif headers.get("access-control-allow-origin") == "*":
                headers["access-control-allow-origin"] = reader
            if "origin" not in headers.get("vary", "").lower():
                headers.add_vary_header("Origin")
            message = {**message, "headers": headers.raw}
        await send(message)

    return sending


def _without_private_network(scope: Scope) -> Scope:
    """Return a request that does not ask whether a local server may be called: the guard has judged that.

    Starlette 1.10's CORS refuses such a preflight with 400, and langgraph-api 0.16.7 does not turn that off,
    though it adds the permission to every answer to OPTIONS.
    """
    asked = b"access-control-request-private-network"
    if all(name != asked for name, _ in scope["headers"]):
        return scope
    return {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != asked]}


def in_process(scope: Scope) -> bool:
    """Whether the server itself sends the request."""
    root: str = scope.get("root_path", "")
    return root == _IN_PROCESS or root.startswith(f"{_IN_PROCESS}/")


def _listed(setting: str | None) -> frozenset[str] | None:
    """Return what a setting lists; None where it is `*`."""
    if setting == "*":
        return None
    return frozenset(setting.split(",")) if setting else frozenset()


def _port(address: str) -> int | None:
    parts = urlsplit(address)
    return parts.port if parts.hostname in _LOOPBACK else None


def _host_name(host: str) -> str | None:
    """Return the name in a header `Host`, without port and final dot; None if it is none."""
    found = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/@?#\s]+?)\.?)(?::\d{0,5})?", host.lower())
    return (found[1] or found[2]) if found else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_of(origin: str, host: str) -> bool:
    """Whether an origin is the server's own, as it was addressed."""
    scheme = origin.partition("://")[0]
    try:
        return bool(host) and origin == origin_of(f"{scheme}://{host}")
    except ValueError:
        return False


def _has_body(headers: Headers) -> bool:
    if headers.get("content-length") == "0":
        return False
    return any(name in headers for name in ("content-length", "transfer-encoding", "content-type"))


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _shown(text: str) -> str:
    return ascii(text[:_SHOWN])
