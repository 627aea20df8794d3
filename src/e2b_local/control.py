"""The control plane: creating, finding, timing, pausing and killing sandboxes."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from e2b_local.bodies import whole_body
from e2b_local.config import Config
from e2b_local.egress import ACCESS, EGRESS, understood
from e2b_local.errors import ApiError
from e2b_local.headers import whole_number
from e2b_local.idempotency import Idempotency
from e2b_local.listing import sandbox_page, snapshot_page
from e2b_local.messages import MessageError, flag, number, pairs, parsed, properties, text, variables
from e2b_local.metrics import samples
from e2b_local.registry import DEFAULT_TIMEOUT_S, Registry
from e2b_local.sandbox import Lifecycle, Request, Sandbox, State
from e2b_local.template import NAMES
from e2b_local.views import connected, detail, listed, snapshotted

MOST_BYTES = 1024 * 1024
"""Of a body; no sandbox needs more metadata, variables and rules than that."""
_MAX_FORKS = 100
_METHODS = ["DELETE", "GET", "PATCH", "POST", "PUT"]
_REFUSED = ("iam", "mcp", "volumeMounts")
_LEAST_REFRESH_S = 15
_CREATION = properties(
    {
        "templateID": text,
        "metadata": pairs,
        "envVars": variables,
        "autoPause": flag,
        "autoPauseMemory": flag,
        "autoResume": properties({"enabled": flag}),
        "secure": flag,
        "allow_internet_access": flag,
    }
)
_INGRESS = properties({"allowPublicTraffic": flag, "maskRequestHost": text})
_ACCESS = properties(dict.fromkeys(ACCESS, flag))
_PAUSE = properties({"memory": flag, "requireHealthyGuest": flag})
_SNAPSHOT = properties({"name": text, "memory": flag})
_HOST = re.compile("[!-~]*")

Handler = Callable[[HttpRequest], Awaitable[Response]]


class ControlPlane:
    """Routes of the control plane over one registry."""

    def __init__(self, config: Config, registry: Registry, domain: str) -> None:
        self._registry = registry
        self._config = config
        self._domain = domain
        self._idempotency = Idempotency()
        routes: list[tuple[str, str, Handler]] = [
            ("POST", "/v2/sandboxes", self._create),
            ("POST", "/sandboxes", self._create),
            ("GET", "/v2/sandboxes", self._list),
            ("GET", "/sandboxes", self._list),
            ("GET", "/sandboxes/metrics", self._all_metrics),
            ("GET", "/sandboxes/{id}", self._detail),
            ("DELETE", "/sandboxes/{id}", self._kill),
            ("POST", "/v2/sandboxes/{id}/connect", self._connect),
            ("POST", "/sandboxes/{id}/connect", self._connect),
            ("POST", "/sandboxes/{id}/resume", self._resume),
            ("POST", "/sandboxes/{id}/refreshes", self._refresh),
            ("POST", "/sandboxes/{id}/timeout", self._timeout),
            ("POST", "/sandboxes/{id}/pause", self._pause),
            ("PUT", "/sandboxes/{id}/network", self._network),
            ("GET", "/sandboxes/{id}/metrics", self._metrics),
            ("POST", "/sandboxes/{id}/fork", self._fork),
            ("POST", "/sandboxes/{id}/snapshots", self._snapshot),
            ("GET", "/snapshots", self._snapshots),
            ("DELETE", "/templates/tags", _not_here),
            ("DELETE", "/templates/{name:path}", self._delete_snapshot),
        ]
        self.app = Router(
            [
                *(Route(path, _guarded(handler), methods=[method]) for method, path, handler in routes),
                # Whatever else is asked for: an error that is not JSON would escape from the SDK as such.
                Route("/{path:path}", _guarded(_not_here), methods=_METHODS),
            ],
            redirect_slashes=False,
        )

    def authorised(self, key: str | None) -> bool:
        """Whether a request's X-API-KEY is this server's."""
        return key == self._config.api_key

    async def _create(self, request: HttpRequest) -> Response:
        body = await _body(request)
        wanted = _creation(body)
        archive = None
        if wanted.template not in NAMES:
            snapshot = self._registry.snapshots.find(wanted.template)
            if snapshot is None:
                raise ApiError(404, f"template '{wanted.template}' not found")
            archive = snapshot.archive
        key = request.headers.get("idempotency-key")
        if key is None:
            sandbox = await self._registry.create(wanted, archive)
        else:
            sandbox = await self._idempotency.once(key, body, lambda: self._registry.create(wanted, archive))
        return JSONResponse(connected(sandbox, self._domain), 201)

    async def _detail(self, request: HttpRequest) -> Response:
        return JSONResponse(
            detail(self._registry.find(request.path_params["id"]), self._config, self._domain)
        )

    async def _list(self, request: HttpRequest) -> Response:
        page, token = sandbox_page(request.query_params, self._registry.all())
        return JSONResponse([listed(each, self._config) for each in page], headers=_next(token))

    async def _connect(self, request: HttpRequest) -> Response:
        body = await _body(request)
        sandbox, resumed = await self._registry.connect(
            request.path_params["id"],
            _timeout(body, DEFAULT_TIMEOUT_S),
            memory=_memory(body),
        )
        return JSONResponse(connected(sandbox, self._domain), 201 if resumed else 200)

    async def _resume(self, request: HttpRequest) -> Response:
        sandbox = self._registry.find(request.path_params["id"])
        if sandbox.state is State.RUNNING:
            raise ApiError(409, f'sandbox "{sandbox.id}" is already running')
        return await self._connect(request)

    async def _refresh(self, request: HttpRequest) -> Response:
        body = await _body(request)
        sandbox = self._registry.find(request.path_params["id"])
        if sandbox.state is State.RUNNING:
            duration_s = properties({"duration": number(self._config.max_timeout_s)})("", body).get(
                "duration", 0
            )
            self._registry.extend(sandbox, max(_LEAST_REFRESH_S, duration_s))
        return Response(status_code=204)

    async def _timeout(self, request: HttpRequest) -> Response:
        body = await _body(request)
        if "timeout" not in body:
            raise ApiError(400, "timeout is required")
        await self._registry.set_timeout(request.path_params["id"], _timeout(body, DEFAULT_TIMEOUT_S))
        return Response(status_code=204)

    async def _pause(self, request: HttpRequest) -> Response:
        memory = _memory(await _body(request))
        await self._registry.pause(request.path_params["id"], memory=memory)
        return Response(status_code=204)

    async def _metrics(self, request: HttpRequest) -> Response:
        sandbox = self._registry.find(request.path_params["id"])
        start, end = (_moment(request, name) for name in ("start", "end"))
        return JSONResponse(await samples(sandbox, self._config, start, end))

    async def _all_metrics(self, request: HttpRequest) -> Response:
        wanted = ",".join(request.query_params.getlist("sandbox_ids")).split(",")
        found = {
            each.id: await samples(each, self._config, None, None)
            for each in self._registry.all()
            if each.id in wanted
        }
        return JSONResponse({"sandboxes": {key: taken[-1] for key, taken in found.items() if taken}})

    async def _network(self, request: HttpRequest) -> Response:
        body = await _body(request)
        # An update replaces what was set before: without a word about it there is no access.
        accesses = _ACCESS("", body)
        given = accesses.get("allow_internet_access", accesses.get("allowInternetAccess"))
        told = {key: body[key] for key in EGRESS if key in body}
        await self._registry.set_internet(request.path_params["id"], understood(body, given), told)
        return Response(status_code=204)

    async def _fork(self, request: HttpRequest) -> Response:
        body = await _body(request)
        count = body.get("count", 1)
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _MAX_FORKS:
            raise ApiError(400, f"count must be between 1 and {_MAX_FORKS}")
        timeout_s = _timeout(body, DEFAULT_TIMEOUT_S)
        items = await self._registry.fork(request.path_params["id"], count, timeout_s)
        return JSONResponse([_forked(item, self._domain) for item in items], 201)

    async def _snapshot(self, request: HttpRequest) -> Response:
        name = _SNAPSHOT("", await _body(request)).get("name")
        snapshot = await self._registry.snapshot(request.path_params["id"], name or None)
        return JSONResponse(snapshotted(snapshot), 201)

    async def _snapshots(self, request: HttpRequest) -> Response:
        page, token = snapshot_page(request.query_params, self._registry.snapshots.all())
        return JSONResponse([snapshotted(each) for each in page], headers=_next(token))

    async def _delete_snapshot(self, request: HttpRequest) -> Response:
        if not self._registry.snapshots.delete(urllib.parse.unquote(request.path_params["name"])):
            raise ApiError(404, "snapshot not found")
        return Response(status_code=204)

    async def _kill(self, request: HttpRequest) -> Response:
        await self._registry.kill(request.path_params["id"])
        return Response(status_code=204)


def _guarded(handler: Handler) -> Handler:
    async def guarded(request: HttpRequest) -> Response:
        try:
            return await handler(request)
        except MessageError as exc:
            return ApiError(400, str(exc)).response()
        except ApiError as exc:
            return exc.response()

    return guarded


async def _not_here(request: HttpRequest) -> Response:
    raise ApiError(404, f"{request.method} {request.scope['path']} is not known here")


async def _body(request: HttpRequest) -> dict[str, Any]:
    return parsed(await whole_body(request, MOST_BYTES) or b"{}")


def _moment(request: HttpRequest, name: str) -> int | None:
    asked = request.query_params.get(name)
    if not asked:
        return None
    moment = whole_number(asked)
    if moment is None:
        raise ApiError(400, f"{name} is not a time in whole seconds")
    return moment


def _next(token: str | None) -> dict[str, str]:
    return {"x-next-token": token} if token else {}


def _timeout(body: dict[str, Any], default: int) -> int:
    timeout_s = body.get("timeout", default)
    if not isinstance(timeout_s, int) or isinstance(timeout_s, bool):
        raise ApiError(400, "timeout is not a whole number")
    return timeout_s


def _memory(body: dict[str, Any]) -> bool:
    return bool(_PAUSE("", body).get("memory", True))


def _creation(body: dict[str, Any]) -> Request:
    given = _CREATION("", body)
    if "templateID" not in given:
        raise ApiError(400, "templateID is required")
    if unknown := [name for name in _REFUSED if body.get(name)]:
        # To ignore them would start something else than what was asked for.
        raise ApiError(400, f"e2b-local has no {', '.join(unknown)}")
    network = body.get("network", {})
    ingress = _INGRESS("network", network)
    if not _HOST.fullmatch(ingress.get("maskRequestHost", "")):
        raise ApiError(400, "network.maskRequestHost is no host that a header can hold")
    access = body.get("allow_internet_access")
    egress = understood(network, access)
    return Request(
        template=given["templateID"],
        timeout_s=_timeout(body, DEFAULT_TIMEOUT_S),
        metadata=given.get("metadata", {}),
        envs=given.get("envVars", {}),
        lifecycle=Lifecycle(
            pause_on_timeout=given.get("autoPause", False),
            keep_memory=given.get("autoPauseMemory", True),
            # Unset means off.
            auto_resume=given.get("autoResume", {}).get("enabled", False),
        ),
        egress=egress,
        internet=None if access is None and not any(map(network.get, EGRESS)) else egress is not None,
        network={key: value for key, value in network.items() if value is not None},
    )


def _forked(item: Sandbox | ApiError, domain: str) -> dict[str, Any]:
    if isinstance(item, ApiError):
        return {"error": {"code": item.status, "message": item.message}}
    return {"sandbox": connected(item, domain)}
