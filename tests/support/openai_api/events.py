"""The server-sent events of a streamed response, in the order in which the API sends them."""

from collections.abc import Iterator
from typing import Any

from support.openai_api.history import Item
from support.openai_api.mind import argument_pieces, pieces

Body = dict[str, Any]


def events(response: Body, *, breaks_off: bool = False) -> Iterator[Body]:
    """Yield the events that lead up to a finished response, numbered; one that breaks off lacks the end."""
    for number, event in enumerate(_events(response)):
        if not breaks_off or not event["type"].endswith((".done", ".completed", ".incomplete")):
            yield {**event, "sequence_number": number}


def _events(response: Body) -> Iterator[Body]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        for event in _item_events(item):
            yield {**event, "output_index": index}
    yield {"type": f"response.{response['status']}", "response": response}


def _item_events(item: Item) -> Iterator[Body]:
    match item["type"]:
        case "reasoning":
            yield _added({**item, "summary": []})
            for index, part in enumerate(item["summary"]):
                yield from _summary(item["id"], index, part)
        case "message":
            yield _added({**item, "status": "in_progress", "content": []})
            for index, part in enumerate(item["content"]):
                for event in _part(part):
                    yield {**event, "item_id": item["id"], "content_index": index}
        case "function_call":
            yield _added({**item, "status": "in_progress", "arguments": ""})
            kind = "response.function_call_arguments"
            for piece in argument_pieces(item["arguments"]):
                yield {"type": f"{kind}.delta", "item_id": item["id"], "delta": piece}
            yield {"type": f"{kind}.done", "item_id": item["id"], "arguments": item["arguments"]}
    yield {"type": "response.output_item.done", "item": item}


def _added(item: Item) -> Body:
    return {"type": "response.output_item.added", "item": item}


def _summary(item_id: str, index: int, part: Body) -> Iterator[Body]:
    place = {"item_id": item_id, "summary_index": index}
    kind = "response.reasoning_summary"
    yield {"type": f"{kind}_part.added", **place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": f"{kind}_text.delta", **place, "delta": piece}
    yield {"type": f"{kind}_text.done", **place, "text": part["text"]}
    yield {"type": f"{kind}_part.done", **place, "part": part}


def _part(part: Body) -> Iterator[Body]:
    key = "refusal" if part["type"] == "refusal" else "text"
    kind = "response.refusal" if key == "refusal" else "response.output_text"
    extra: Body = {} if key == "refusal" else {"logprobs": []}
    yield {"type": "response.content_part.added", "part": {**part, key: ""}}
    for piece in pieces(part[key]):
        yield {"type": f"{kind}.delta", "delta": piece, **extra}
    yield {"type": f"{kind}.done", key: part[key], **extra}
    yield {"type": "response.content_part.done", "part": part}
