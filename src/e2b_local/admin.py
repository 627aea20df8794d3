"""Routes for tests: faults, what lives, sudden deaths, the pool. For clients on this machine with the key."""

from __future__ import annotations

import ipaddress
import random

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from e2b_local.bodies import whole_body
from e2b_local.control import MOST_BYTES
from e2b_local.errors import ApiError
from e2b_local.faults import Faults
from e2b_local.messages import MessageError, parsed
from e2b_local.registry import Registry
from e2b_local.sandbox import Sandbox, State

PREFIX = "/_local/"


class Admin:
    """Answers requests below /_local/."""

    def __init__(self, registry: Registry, faults: Faults) -> None:
        self._registry = registry
        self._faults = faults

    async def handle(self, request: Request) -> Response:
        """Answer one request; the gateway has checked the key.

        Raises:
            ApiError: 403 from elsewhere than loopback, 400 or 404 as the request deserves.
        """
        if request.client is None or not ipaddress.ip_address(request.client.host).is_loopback:
            raise ApiError(403, "only for clients on this machine")
        match (request.method, *request.scope["path"].removeprefix(PREFIX).split("/")):
            case ("POST", "faults"):
                return JSONResponse(self._faults.add(await _body(request)).shown(), 201)
            case ("GET", "faults"):
                return JSONResponse([fault.shown() for fault in self._faults.all()])
            case ("DELETE", "faults"):
                self._faults.clear()
                return Response(status_code=204)
            case ("GET", "pool"):
                return JSONResponse({"ready": self._registry.warm})
            case ("GET", "sandboxes"):
                return JSONResponse([_shown(each) for each in self._registry.all()])
            case ("POST", "sandboxes", "any", "die"):
                running = [each for each in self._registry.all() if each.state is State.RUNNING]
                if not running:
                    raise ApiError(404, "no sandbox is running")
                return await self._die(random.choice(running))
            case ("POST", "sandboxes", sandbox_id, "die"):
                return await self._die(self._registry.find(sandbox_id))
        raise ApiError(404, f"{request.method} {request.scope['path']} is not known here")

    async def _die(self, sandbox: Sandbox) -> Response:
        # As if all its processes had ended by themselves; the registry learns of it as it would then.
        await sandbox.box.kill()
        return JSONResponse(_shown(sandbox))


def _shown(sandbox: Sandbox) -> dict[str, object]:
    return {
        "sandboxID": sandbox.id,
        "state": sandbox.state.value,
        "metadata": sandbox.request.metadata,
        "endAt": sandbox.end_at.isoformat(),
    }


async def _body(request: Request) -> dict[str, object]:
    try:
        return parsed(await whole_body(request, MOST_BYTES))
    except MessageError as exc:
        raise ApiError(400, str(exc)) from exc
