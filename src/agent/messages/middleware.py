"""The one place between an agent's state and its model, and between the model and the agent's tools."""

from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ModelCallResult
from langchain_core.exceptions import ContextOverflowError, ModelInvalidRequestError
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage

from agent.messages.answers import Heard, examined, hearing, unreadable
from agent.messages.attachments import Images, Takes
from agent.messages.requests import NOTICE, Conversation, acceptable
from agent.messages.texts import well_formed_deeply

_REFUSED = frozenset({400, 404, 415, 422})
"""Statuses by which providers refuse what is in a request; others are of keys, quotas, their own state."""


class MessagesMiddleware(AgentMiddleware[Any, Any, Any]):
    """Sends the model what its provider takes, and lets no answer through that is not whole.

    List it after all middleware that chooses the model, adds to the conversation or acts on what the model
    calls. It adds no step to the graph.

    Args:
        images: whether models take images; `auto` asks langchain's profile of each.
    """

    def __init__(self, images: Images = "auto") -> None:
        super().__init__()
        self._images = images

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> ModelCallResult[Any]:
        """Call the model; ask once more in plain words where its provider refuses the conversation."""
        takes = Takes.of(request.model, self._images)
        sent = acceptable(request.messages, takes)
        system = request.system_message
        request = request.override(
            system_message=SystemMessage(well_formed_deeply(system.content)) if system else None
        )
        with hearing() as heard:
            try:
                response = await _asked(request, sent, handler, heard)
            except Exception as exc:
                plain = acceptable(request.messages, takes, plain=True)
                if not _is_refused(exc) or plain.messages == sent.messages:
                    raise
                sent, response = plain, await _asked(request, plain, handler, heard)
        return _examined(response, request, sent, heard, takes)


async def _asked(request: ModelRequest[Any], sent: Conversation, handler: Any, heard: Heard) -> Any:
    try:
        return await handler(request.override(messages=sent.messages))
    # pydantic's, of the message that langchain could not make.
    except ValueError as exc:
        answer = unreadable(exc, heard)
        if answer is None:
            raise
        return ModelResponse([answer])


def _is_refused(exc: Exception) -> bool:
    """Whether a provider refused the conversation itself, and not its length."""
    if isinstance(exc, ContextOverflowError):
        return False
    return isinstance(exc, ModelInvalidRequestError) or getattr(exc, "status_code", None) in _REFUSED


def _examined(
    response: Any, request: ModelRequest[Any], sent: Conversation, heard: Heard, takes: Takes
) -> ModelCallResult[Any]:
    made = ModelResponse([response]) if isinstance(response, AIMessage) else response
    result = getattr(made, "model_response", made)
    # A structured answer comes with the result of its call, and was read already.
    if len(result.result) == 1 and isinstance(answer := result.result[0], AIMessage):
        result.result = [*_notice(sent), *examined(answer, heard, takes.api, request.messages)]
    return made


def _notice(sent: Conversation) -> list[AnyMessage]:
    """Return what the user is told of what the model was not given."""
    if not sent.left_out:
        return []
    words = "\n".join(f"- {one}" for one in sent.left_out)
    told = f"The model was not given all of your message:\n{words}"
    return [AIMessage(told, response_metadata={NOTICE: "beside"})]
