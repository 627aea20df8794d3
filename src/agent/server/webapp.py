"""The routes served beside the graphs; `http.app` in langgraph.json.

The LangGraph server builds its own app around this one. Each route is guarded by one of those in
`access`.
"""

from starlette.applications import Starlette

from agent.artifacts.routes import artifact_routes
from agent.server.deployment import deployment_routes
from agent.settings import Settings

_settings = Settings.from_env()

app = Starlette(routes=[*artifact_routes(_settings), *deployment_routes(_settings)])
