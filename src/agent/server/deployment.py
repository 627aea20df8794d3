"""Saying which deployment this server is, so that a reaper does not take another server's word on threads."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agent.deployment import deployment_name
from agent.server.access import for_callers
from agent.settings import Settings


def deployment_routes(settings: Settings) -> list[BaseRoute]:
    """Return `GET /deployment`: `{"deployment": name}`, the name that marks this deployment's sandboxes."""

    @for_callers
    async def name(request: Request) -> Response:
        return JSONResponse({"deployment": await deployment_name(settings)})

    return [Route("/deployment", name)]
