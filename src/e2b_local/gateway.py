"""One address for everything: sandbox traffic by header or host name, else the control plane."""

from __future__ import annotations

import contextlib
import hmac
import re

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from e2b_local import envd, interpreter
from e2b_local.admin import PREFIX as ADMIN_PREFIX
from e2b_local.admin import Admin
from e2b_local.agent_client import BoxGoneError
from e2b_local.control import ControlPlane
from e2b_local.errors import ApiError, not_found_traffic, port_closed_traffic
from e2b_local.faults import Faults
from e2b_local.headers import sandbox_address
from e2b_local.inbox.wire import OpError
from e2b_local.proxy import forward
from e2b_local.registry import Registry
from e2b_local.sandbox import Sandbox, State
from e2b_local.signatures import signed_for
from e2b_local.web_pages import check_host, check_origin

_SLASHES = re.compile(r"/{2,}")


class Gateway:
    """The ASGI application."""

    def __init__(self, registry: Registry, control: ControlPlane, domain: str) -> None:
        """Take the domain below which names of sandboxes lead here, beside `localhost`."""
        self._domain = domain
        self._registry = registry
        self._control = control
        self._faults = Faults(self._serve)
        self._admin = Admin(registry, self._faults)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a request where it belongs."""
        if scope["type"] != "http":
            return
        # A trailing slash in E2B_SANDBOX_URL makes the SDK ask for //process.Process/Start.
        scope["path"] = _SLASHES.sub("/", scope["path"])
        if scope["path"].startswith(ADMIN_PREFIX):
            await self._serve(scope, receive, send)
        else:
            await self._faults(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        app: ASGIApp
        try:
            address = sandbox_address(request.headers)
            if address is not None:
                check_host(request.headers, self._domain)
                app = await self._traffic(request, *address)
            elif scope["path"] == "/files" and "signature" in request.query_params:
                app = await self._signed(request)
            elif not self._control.authorised(request.headers.get("x-api-key")):
                raise ApiError(401, "invalid API key: it must be the one this server printed at its start")
            elif scope["path"].startswith(ADMIN_PREFIX):
                app = await self._admin.handle(request)
            else:
                app = self._control.app
        except ApiError as exc:
            app = exc.response()
        except ClientDisconnect:  # in the middle of what it sent: there is nobody to answer
            return
        # A reply that breaks off in the middle: the connection is dropped, so that it does not look whole.
        with contextlib.suppress(BoxGoneError, OpError):
            await app(scope, receive, send)

    async def _traffic(self, request: Request, sandbox_id: str, port: int) -> Response:
        if port in (envd.PORT, interpreter.PORT):
            check_origin(request.headers, sandbox_id)
        sandbox = self._registry.get(sandbox_id)
        if sandbox is None:
            return not_found_traffic(sandbox_id)
        if sandbox.state is State.PAUSED:
            refusal = await self._wake(sandbox, port, request)
            if refusal is not None:
                return refusal
        if port == envd.PORT:
            return await envd.handle(sandbox, request)
        given = request.headers.get("e2b-traffic-access-token", "")
        if sandbox.traffic_token is not None and not hmac.compare_digest(
            given.encode(), sandbox.traffic_token.encode()
        ):
            return JSONResponse({"sandboxId": sandbox_id, "message": "Sandbox is private", "code": 403}, 403)
        if port == interpreter.PORT:
            return await interpreter.handle(sandbox, request)
        try:
            return await forward(sandbox, port, request)
        except BoxGoneError:
            return port_closed_traffic(sandbox_id, port)

    async def _signed(self, request: Request) -> Response:
        try:
            sandbox = signed_for(request, self._registry.all())
            if sandbox is None:
                raise OpError("unauthenticated", "invalid signature")
        except OpError as exc:
            return JSONResponse({"code": 401, "message": exc.message}, 401)
        if sandbox.state is State.PAUSED and not await self._registry.wake(sandbox):
            return not_found_traffic(sandbox.id)
        return await envd.files(sandbox, request)

    async def _wake(self, sandbox: Sandbox, port: int, request: Request) -> Response | None:
        if not sandbox.request.lifecycle.auto_resume:
            # Told like a killed one; only the control plane tells them apart.
            return not_found_traffic(sandbox.id)
        if port == envd.PORT and not envd.authorised(sandbox, request):
            # A stray request must not wake what costs money.
            return JSONResponse({"code": 403, "message": "permission denied"}, 403)
        if not await self._registry.wake(sandbox):
            return not_found_traffic(sandbox.id)
        return None
