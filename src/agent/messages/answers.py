"""From the model's answer to the tools: nothing that is not whole is run, nothing ends without a word.

A streamed answer that ends early looks complete: langchain mends what is missing of a call's arguments, and
`rm -rf keep` may be all that is left of `rm -rf keep/tmp`. So the arguments are read once more as they were
sent, and an answer that its provider did not finish runs nothing at all.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tracers.context import register_configure_hook

from agent.client.events import NO_ANSWER
from agent.messages.attachments import Api
from agent.messages.pairing import called
from agent.messages.texts import is_storable, object_of, well_formed, well_formed_deeply
from agent.tools.budget import clipped

MAX_UNUSABLE = 3
"""Answers in a row whose calls cannot be run, before the run stops asking for another."""
MAX_SHOWN_BYTES = 300
"""Of arguments that cannot be read, in what the model is told of them."""

NOT_AN_OBJECT = "no JSON object: "
"""Before arguments that are JSON but no object, so that langchain's packages read them as invalid ones."""

Stop = Literal["whole", "cut", "unfinished", "refused", "filtered"]

STOPS: dict[str, Stop] = {
    # OpenAI, and what is compatible.
    "length": "cut", "max_output_tokens": "cut", "content_filter": "filtered", "incomplete": "cut",
    "failed": "unfinished", "cancelled": "unfinished", "in_progress": "unfinished",
    # Anthropic.
    "max_tokens": "cut", "model_context_window_exceeded": "cut", "refusal": "refused",
    # Others: Google, Bedrock, Mistral.
    "safety": "filtered", "prohibited_content": "filtered", "blocklist": "filtered", "recitation": "filtered",
    "malformed_function_call": "cut", "guardrail_intervened": "filtered", "content_filtered": "filtered",
    "model_length": "cut", "error": "unfinished",
}  # fmt: skip
"""Why providers say that an answer ended, where it is not at its end."""
_REASONS = ("finish_reason", "stop_reason", "stopReason", "finishReason", "done_reason")

_WHY: dict[Stop, str] = {
    "cut": "the answer was cut off at its limit of length",
    "unfinished": "the answer broke off before its end",
    "refused": "the model refused",
    "filtered": "a content filter ended the answer",
}
_CUT_CALL = (
    "error: {why}, and nothing of it was run. If the call is still needed, make it again with less in it, "
    "such as a long file in several parts."
)
_BAD_CALL = (
    "error: the arguments of this call are not one whole JSON object, and it was not run. They were:\n"
    "{shown}\nMake the call again."
)
_WORDS: dict[str, str] = {
    "cut": "The answer was cut off at the model's limit of length: it is not complete.",
    "unfinished": "The answer broke off before its end: it is not complete. Ask again.",
    "refused": "The model refused to answer.",
    "filtered": "A content filter of the model's provider stopped the answer.",
    "empty": "The model gave no answer in words. Ask again, or in another way.",
    "unusable": (
        f"I stopped: {MAX_UNUSABLE} times in a row the model called tools in a way that could not be run. "
        "Nothing of these calls was run. Ask again, or in smaller steps."
    ),
}
_EMPTY_CUT = (
    "The model used up its limit of length before it came to an answer in words. Ask again, or in smaller "
    "steps."
)


@dataclass(slots=True)
class _Call:
    name: str
    id: str
    pieces: list[str] = field(default_factory=list)


class Heard(AsyncCallbackHandler):
    """What a model sent of its calls, as it was sent; nothing where it did not stream."""

    def __init__(self) -> None:
        super().__init__()
        self.streamed = False
        self._calls: list[_Call] = []
        self._at: dict[Any, _Call] = {}

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        """Name, id and arguments of each call."""
        return [(call.name, call.id, "".join(call.pieces)) for call in self._calls]

    async def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Begin anew: an answer before this one came to nothing."""
        self.streamed, self._calls, self._at = False, [], {}

    async def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        """Keep what a chunk holds of calls."""
        self.streamed = True
        message = getattr(chunk, "message", None)
        for piece in message.tool_call_chunks if isinstance(message, AIMessageChunk) else []:
            known = self._at.get(piece["index"]) if piece["index"] is not None else None
            if known is None or (piece["id"] and known.id and piece["id"] != known.id):
                known = self._at[piece["index"]] = _Call("", "")
                self._calls.append(known)
            known.name += piece["name"] or ""
            known.id = known.id or piece["id"] or ""
            known.pieces.append(piece["args"] or "")

    async def on_stream_event(self, event: Any, **kwargs: Any) -> None:
        """Note that it streamed; this form of stream is read strictly by langchain itself."""
        self.streamed = True


_heard: ContextVar[Heard | None] = ContextVar("heard", default=None)
register_configure_hook(_heard, inheritable=True)


@contextmanager
def hearing() -> Iterator[Heard]:
    """Listen to the models that are called within."""
    heard = Heard()
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


def examined(
    message: AIMessage, heard: Heard, api: Api, before: Sequence[AnyMessage] = ()
) -> list[AnyMessage]:
    """Return what of an answer goes into state: calls that are run, and words for all that is not.

    Args:
        message: the model's.
        heard: how it came.
        api: by which it came.
        before: the conversation, which tells how often the model was asked again.

    Returns:
        The message as it was, where nothing is wrong with it. Else calls that cannot be run, each with an
        error for its result, so that the model is asked again; or words for the user.
    """
    message = _encodable(message)
    stop = stop_of(message, heard, api)
    calls = _calls(message, heard)
    if not calls:
        return _worded(message, stop)
    if stop == "whole" and all(call.args is not None and call.sound for call in calls):
        return [message]
    made = _plain(message, calls)
    results: list[AnyMessage] = []
    for call in calls:
        if words := _error(call, stop):
            results.append(ToolMessage(words, tool_call_id=call.id, name=call.name, status="error"))
    if stop in {"refused", "filtered"}:
        return [made, *results, _notice(message, stop, _refusal(message), alone=False)]
    if len(results) < len(calls):
        return [made, *results]
    made.response_metadata[_UNUSABLE] = True
    ends = _unusable(before) + 1 >= MAX_UNUSABLE
    return [made, *results, *([_notice(message, "unusable", alone=False)] if ends else [])]


_UNUSABLE = "unusable_calls"


def problem_of(message: AIMessage, heard: Heard, api: Api) -> str:
    """Return what keeps an answer from being used, for model and user; empty where nothing does."""
    stop = stop_of(message, heard, api)
    if stop != "whole":
        return f"{_WHY[stop]}{_colon(_refusal(message))}"
    if refusal := _refusal(message):
        return f"the model refused: {refusal}"
    bad = [call for call in _calls(message, heard) if call.args is None]
    return f"the arguments of the call are no whole JSON object: {bad[0].shown}" if bad else ""


def _colon(words: str) -> str:
    return f": {words}" if words else ""


def stop_of(message: AIMessage, heard: Heard, api: Api) -> Stop:
    """Return how an answer ended, as its provider says."""
    meta = message.response_metadata
    details = meta.get("incomplete_details")
    reasons = [meta.get(name) for name in _REASONS]
    reasons += [details.get("reason") if isinstance(details, dict) else None]
    reasons += [meta.get("status")] if api == "responses" else []
    given = [reason.lower() for reason in reasons if isinstance(reason, str) and reason]
    if not given:
        # These providers always say how an answer ended: the stream broke off.
        return "unfinished" if heard.streamed and api != "other" else "whole"
    return next((STOPS[reason] for reason in given if reason in STOPS), "whole")


@dataclass(slots=True)
class _Made:
    """A call of an answer."""

    name: str
    id: str
    args: dict[str, Any] | None
    shown: str = ""
    sound: bool = True
    """Whether name and id can stay as they are."""


def _calls(message: AIMessage, heard: Heard) -> list[_Made]:
    """Return the calls of an answer, in order; one without `args` cannot be read."""
    count = len(message.tool_calls) + len(message.invalid_tool_calls)
    if heard.calls and len(heard.calls) == count:
        found = [(name, call_id, object_of(sent), sent) for name, call_id, sent in heard.calls]
    else:
        sent_by = {call_id: sent for _, call_id, sent in heard.calls}
        found = []
        for call in message.tool_calls:
            sent = sent_by.get(call["id"] or "")
            args = call["args"] if is_storable(call["args"]) else None
            found.append(
                (call["name"], call["id"] or "", args if sent is None else object_of(sent), sent or "")
            )
        for bad in message.invalid_tool_calls:
            found.append((bad["name"] or "", bad["id"] or "", None, bad["args"] or ""))
    made: list[_Made] = []
    used: set[str] = set()
    for name, call_id, args, sent in found:
        sound = bool(call_id) and call_id not in used and called(name) == name
        own = call_id if call_id and call_id not in used else f"call_{uuid4().hex[:24]}"
        used.add(own)
        args = None if args is None else well_formed_deeply(args)
        made.append(_Made(called(name), own, args, well_formed(sent).removeprefix(NOT_AN_OBJECT), sound))
    return made


def _error(call: _Made, stop: Stop) -> str:
    if stop != "whole":
        return _CUT_CALL.format(why=_WHY[stop])
    if call.args is not None:
        return ""
    return _BAD_CALL.format(shown=clipped(call.shown, MAX_SHOWN_BYTES) or "(not to be read at all)")


def _plain(message: AIMessage, calls: Sequence[_Made]) -> AIMessage:
    """Return the answer without what its provider attached: that names the calls as they were."""
    return AIMessage(
        message.text,
        tool_calls=[{"name": c.name, "args": c.args or {}, "id": c.id, "type": "tool_call"} for c in calls],
        id=message.id,
        name=message.name,
        usage_metadata=message.usage_metadata,
        response_metadata={**message.response_metadata},
    )


def _unusable(before: Sequence[AnyMessage]) -> int:
    """Return how many of the last answers in a row had no call that could be run."""
    count = 0
    for message in reversed(before):
        if isinstance(message, HumanMessage):
            break
        if isinstance(message, AIMessage):
            if not message.response_metadata.get(_UNUSABLE):
                break
            count += 1
    return count


def _worded(message: AIMessage, stop: Stop) -> list[AnyMessage]:
    """Return an answer without calls, or words in the place of one that has none."""
    refusal, says = _refusal(message), bool(message.text.strip())
    stop = "refused" if refusal else stop
    if says:
        return [message] if stop == "whole" else [message, _notice(message, stop, refusal, alone=False)]
    return [_notice(message, "empty" if stop == "whole" else stop, refusal)]


def _refusal(message: AIMessage) -> str:
    parts = [message.additional_kwargs.get("refusal")]
    if isinstance(message.content, list):
        parts += [block.get("refusal") for block in message.content if isinstance(block, dict)]
    details = message.response_metadata.get("stop_details")
    if isinstance(details, dict):
        parts.append(details.get("explanation"))
    return well_formed(" ".join(part.strip() for part in parts if isinstance(part, str) and part.strip()))


def _notice(message: AIMessage, why: str, refusal: str = "", *, alone: bool = True) -> AIMessage:
    """Return words of ours for the user; what they stand for is in the metadata, for programs."""
    words = _EMPTY_CUT if alone and why == "cut" else _WORDS[why]
    if refusal:
        words = f"{words.removesuffix('.')}: {refusal}"
    spent = message.usage_metadata if alone else None
    about = {name: message.response_metadata[name] for name in _ABOUT if name in message.response_metadata}
    return AIMessage(
        words, name=message.name, usage_metadata=spent, response_metadata={**about, NO_ANSWER: why}
    )


_ABOUT = ("model_name", "model_provider", "id", "status", "incomplete_details", *_REASONS)


def _encodable(message: AIMessage) -> AIMessage:
    """Return the message with texts that can be kept."""
    given = [message.content, [call["args"] for call in message.tool_calls]]
    whole = well_formed_deeply(given)
    if whole == given or not all(is_storable(args) for args in given[1]):
        return message
    calls = [{**call, "args": args} for call, args in zip(message.tool_calls, whole[1], strict=True)]
    return message.model_copy(update={"content": whole[0], "tool_calls": calls})


def ended_early(exc: Exception) -> str:
    """Return how an answer ended for which OpenAI's package raises an exception; empty for another one."""
    stops: dict[str, Stop] = {"LengthFinishReasonError": "cut", "ContentFilterFinishReasonError": "filtered"}
    if stop := stops.get(type(exc).__name__):
        return _WHY[stop]
    details = _answer_of(exc).get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return _WHY[STOPS[reason]] if reason in STOPS else ""


def texts_of(exc: Exception) -> list[str]:
    """Return the texts of an answer that failed while it was read."""
    answer = _answer_of(exc)
    messages = [choice["message"] for choice in answer.get("choices") or []] + (answer.get("output") or [])
    contents = [message.get("content") for message in messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return [
        text for text in [*contents, *(part.get("text") for part in parts)] if isinstance(text, str) and text
    ]


def _answer_of(exc: Exception) -> dict[str, Any]:
    """Return the answer that langchain-openai attaches to what failed while it was read."""
    try:
        answer = exc.response.json()  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}


def unreadable(exc: Exception, heard: Heard) -> AIMessage | None:
    """Return what is left of an answer that langchain could not make a message of; None for another failure.

    Such are arguments that are JSON but no object, in an answer that was not streamed.
    """
    if getattr(exc, "title", "") not in {"AIMessage", "AIMessageChunk"}:
        return None
    bad = [
        {"name": name, "id": call_id, "args": sent, "error": None, "type": "invalid_tool_call"}
        for name, call_id, sent in heard.calls
    ]
    nothing = {"name": "unreadable", "id": None, "args": "", "error": None, "type": "invalid_tool_call"}
    return AIMessage("", invalid_tool_calls=bad or [nothing], response_metadata={"stop_reason": "unreadable"})
