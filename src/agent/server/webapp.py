"""The routes served beside the graphs; `http.app` in langgraph.json.

The LangGraph server builds its own app around this one, and this one's middleware stands before all routes,
the server's own too. Each route here is guarded by one of those in `access`.
"""

from starlette.applications import Starlette
from starlette.middleware import Middleware

from agent.artifacts.routes import artifact_routes
from agent.server.bodies import Bodies
from agent.server.cross_site import CrossSiteGuard, CrossSiteRule, signed_routes
from agent.server.deployment import deployment_routes
from agent.server.files import file_routes
from agent.server.uploads import upload_routes
from agent.server.worded_errors import WordedErrors
from agent.settings import Settings
from agent.wiring import sandbox_manager

_settings = Settings.from_env()
_manager = sandbox_manager(_settings)
_bodies = Bodies()
_routes = [
    *artifact_routes(_settings),
    *deployment_routes(_settings),
    *file_routes(_manager, bodies=_bodies),
    *upload_routes(_settings, _manager, bodies=_bodies),
]

app = Starlette(
    routes=_routes,
    middleware=[
        Middleware(CrossSiteGuard, rule=CrossSiteRule.of(_settings), signed=signed_routes(_routes)),
        Middleware(WordedErrors),
    ],
)
