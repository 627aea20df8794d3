"""Keeping long threads short: what is old becomes a summary in state, so that checkpoints stay small, too."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain.agents.middleware.summarization import DEFAULT_SUMMARY_PROMPT
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AnyMessage, get_buffer_string
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import get_runtime

from agent.messages.attachments import Takes
from agent.messages.requests import acceptable, light
from agent.models import chat_model
from agent.settings import Settings

KEPT = 4
"""Of the limit, one part in so many stays as it is; the rest becomes the summary."""


def summaries(settings: Settings) -> SummarizationMiddleware[Any, Any]:
    """Return langchain's middleware, with the run's own model for a writer.

    Args:
        settings: `max_context_tokens` is where a thread is summarized, counted roughly.
    """

    async def summarize(messages: Sequence[AnyMessage]) -> str:
        context = get_runtime().context
        # Without the tag the summary would stream to clients as if it were the answer.
        model = chat_model(settings, getattr(context, "model", None)).with_config(tags=[TAG_NOSTREAM])
        words = acceptable(messages, Takes("other"), plain=True).messages
        prompt = DEFAULT_SUMMARY_PROMPT.format(messages=get_buffer_string(words))
        return (await model.ainvoke(prompt)).text

    limit = settings.max_context_tokens
    middleware: SummarizationMiddleware[Any, Any] = SummarizationMiddleware(
        # Required, but never called beside a summarizer: the run's model is known in the run alone.
        FakeListChatModel(responses=[]),
        trigger=("tokens", limit),
        keep=("tokens", limit // KEPT),
        trim_tokens_to_summarize=limit,
        summarizer=summarize,
    )
    # As langchain counts, but for what is attached, which it counts by its base64, and what it cannot count.
    middleware.token_counter = _of_light(middleware.token_counter)
    middleware._partial_token_counter = _of_light(middleware._partial_token_counter)
    return middleware


def _of_light(count: Callable[[Iterable[Any]], int]) -> Callable[[Iterable[Any]], int]:
    return lambda messages: count(light(list(messages)))
