"""Known secrets are taken out of what tools return and of what streams to clients."""

from agent.redaction.middleware import RedactionMiddleware
from agent.redaction.secrets import Secrets

__all__ = ["RedactionMiddleware", "Secrets"]
