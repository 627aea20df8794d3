"""Which chat model a run uses."""

import asyncio
from typing import Any
from weakref import WeakKeyDictionary

import httpx
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ModelCallResult
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime

from agent.errors import AgentError, ModelError
from agent.settings import Settings

SCRIPTED = "scripted:"
REASONING = ("gpt-5", "gpt-6", "o1", "o3", "o4")
"""How the names of OpenAI's reasoning models begin; others refuse the option."""

_http_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


def chat_model(settings: Settings, name: str | None = None) -> BaseChatModel:
    """Build the chat model of a run.

    Nothing is sent: building needs the key but no network.

    Args:
        settings: the deployment's settings; they hold the default model and OpenAI's options.
        name: `provider:name`, or `scripted:<script>`; default `settings.model`.

    Returns:
        A chat model that can call tools.

    Raises:
        ModelError: the name is unknown, or the provider's key or package is missing.
    """
    name = name or settings.model
    if name.startswith(SCRIPTED):
        # Imported when asked for: a deployment with a real model never loads the stand-in.
        from agent.scripted.model import ScriptedChatModel

        return ScriptedChatModel.from_script(name.removeprefix(SCRIPTED))
    options: dict[str, Any] = {}
    if _provider(name) == "openai":
        if settings.openai_api_key is None:
            raise ModelError(
                f"OPENAI_API_KEY is not set, and the model {name!r} needs it. Set it in the environment (a "
                "served graph reads .env too), choose another MODEL, or try MODEL=scripted:repair+chat: that "
                "needs no key."
            )
        options["api_key"] = settings.openai_api_key
        options["use_responses_api"] = settings.openai_use_responses_api
        options["stream_usage"] = True
        options["http_async_client"] = _http_client()
        if settings.openai_base_url:
            options["base_url"] = settings.openai_base_url
        if name.removeprefix("openai:").startswith(REASONING):
            responses = settings.openai_use_responses_api
            options["reasoning_effort"] = settings.openai_reasoning_effort if responses else "none"
    try:
        if options:
            from agent.openai_chat import OpenAIChat

            return OpenAIChat(model=name.removeprefix("openai:"), **options)
        model: BaseChatModel = init_chat_model(name)
    # Each provider's constructor fails in its own way when a key, an option or a package is missing.
    except Exception as exc:
        raise ModelError(
            f"the model {name!r} cannot be built: {_first_line(exc)}. A model is named "
            "`provider:name`; its provider's package must be installed and its key set."
        ) from exc
    return model


def _provider(name: str) -> str:
    provider, colon, _ = name.partition(":")
    return provider if colon else ("openai" if name.startswith(("gpt-", "o1", "o3", "o4")) else "")


def _http_client() -> httpx.AsyncClient | None:
    """Return this event loop's client; the provider's package shares one among all loops, which breaks."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    client = _http_clients.get(loop)
    if client is None:
        # Models think for minutes; what bounds a call is the provider's client above, not the transport.
        from agent.openai_chat import AnswersClient

        client = _http_clients[loop] = AnswersClient(timeout=None, follow_redirects=True)
    return client


def _first_line(exc: Exception) -> str:
    return (str(exc).strip() or type(exc).__name__).splitlines()[0].rstrip(".")


def placeholder_model() -> BaseChatModel:
    """Return a model that is built when first called, for `create_agent` at import: no key is read.

    `ModelMiddleware` replaces it in every call.
    """
    model: BaseChatModel = init_chat_model(configurable_fields=("model", "model_provider"))  # type: ignore[assignment]
    return model


class ModelMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives each model call the model that the run's context names, or else the deployment's."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        """Find out that a model cannot be built before there is a sandbox to leave behind."""
        chat_model(self._settings, getattr(runtime.context, "model", None))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> ModelCallResult[Any]:
        """Replace the model of the request, and say so when it cannot be had.

        Raises:
            ModelError: the provider refused or did not answer; its own class and words are the cause.
        """
        name = getattr(request.runtime.context, "model", None)
        model = chat_model(self._settings, name)
        try:
            response: ModelResponse[Any] = await handler(request.override(model=model))
        except (AgentError, GraphBubbleUp):
            raise
        # Each provider's package has classes of its own, and a server hides the text of all of them.
        except Exception as exc:
            raise ModelError(
                f"the model {name or self._settings.model!r} failed: {type(exc).__name__}: {_first_line(exc)}"
            ) from exc
        return response
