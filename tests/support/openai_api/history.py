"""The items of the Responses API: which were handed out, and which histories are whole.

The rules on reasoning are worded after the errors that users of the service report: a reasoning item goes
back together with the item that followed it, and that item goes back together with its reasoning
(github.com/openai/openai-node/issues/1567, github.com/openai/openai-agents-python/issues/1611).
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from support.openai_api.errors import ApiError, too_long

Item = dict[str, Any]
PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
MAX_CALL_ID = 64


@dataclass
class Stored:
    """What the service remembers of earlier responses."""

    responses: dict[str, list[Item]] = field(default_factory=dict)
    """Response id → input and output, for `previous_response_id`."""
    reasoning: dict[str, bool] = field(default_factory=dict)
    """Id of each reasoning item → whether its response was stored."""
    follows: dict[str, str] = field(default_factory=dict)
    """Reasoning id → id of the item right after it."""
    needs: dict[str, str] = field(default_factory=dict)
    """Id of an output item → id of the reasoning that came before it."""

    def keep(self, response_id: str, sent: list[Item], output: list[Item], *, store: bool) -> None:
        """Remember a response."""
        if store:
            self.responses[response_id] = [*sent, *output]
        thought = None
        for item in output:
            if item["type"] == "reasoning":
                thought = item["id"]
                self.reasoning[thought] = store
            elif thought and store:
                self.follows.setdefault(thought, item["id"])
                self.needs[item["id"]] = thought

    def before(self, response_id: str) -> list[Item]:
        """Return the items of an earlier response and all before it."""
        if response_id not in self.responses:
            raise ApiError(
                f"Previous response with id '{response_id}' not found.",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        return self.responses[response_id]


def check_history(items: list[Item], stored: Stored) -> None:
    """Refuse items that do not belong together.

    Raises:
        ApiError: the first thing that is wrong.
    """
    _check_ids(items)
    _check_calls(items)
    _check_reasoning(items, stored)


def kind(item: Item) -> str:
    """Return an item's type; a message may leave it out."""
    return str(item.get("type", "message"))


def _check_ids(items: list[Item]) -> None:
    seen: set[str] = set()
    for index, item in enumerate(items):
        if (item_id := item.get("id")) is None:
            continue
        prefix = PREFIXES.get(kind(item))
        if prefix and not item_id.startswith(prefix):
            raise ApiError(
                f"Invalid 'input[{index}].id': '{item_id}'. Expected an ID that begins with '{prefix}'.",
                param=f"input[{index}].id",
                code="invalid_value",
            )
        if item_id in seen:
            raise ApiError(
                f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try "
                "again.",
                param="input",
            )
        seen.add(item_id)


def _check_calls(items: list[Item]) -> None:
    """Pair calls and outputs by their id, wherever the output stands after the call."""
    made: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for index, item in enumerate(items):
        if kind(item) == "function_call":
            made[item["call_id"]] += 1
            _check_call_id(item["call_id"], index)
        if kind(item) == "function_call_output":
            answered[item["call_id"]] += 1
            if not made[item["call_id"]]:
                raise ApiError(
                    f"No tool call found for function call output with call_id {item['call_id']}.",
                    param="input",
                )
    for call_id, times in made.items():
        if not answered[call_id]:
            raise ApiError(f"No tool output found for function call {call_id}.", param="input")
        # The service's wording for this one is not known.
        if times > 1 or answered[call_id] > 1:
            raise ApiError(f"Duplicate call_id found in input: {call_id}.", param="input")


def _check_call_id(call_id: str, index: int) -> None:
    if len(call_id) > MAX_CALL_ID:
        raise too_long(f"input[{index}].call_id", call_id, MAX_CALL_ID)


def _check_reasoning(items: list[Item], stored: Stored) -> None:
    before: set[str] = set()
    for index, item in enumerate(items):
        item_id = item.get("id", "")
        if kind(item) == "reasoning":
            _check_known(item, stored)
            if not _followed(item_id, items[index + 1 : index + 2], stored):
                raise ApiError(
                    f"Item '{item_id}' of type 'reasoning' was provided without its required following item.",
                    param="input",
                )
        elif stored.needs.get(item_id, item_id) not in before | {item_id}:
            raise ApiError(
                f"Item '{item_id}' of type '{kind(item)}' was provided without its required 'reasoning' "
                f"item: '{stored.needs[item_id]}'.",
                param="input",
            )
        before.add(item_id)


def _followed(reasoning_id: str, following: list[Item], stored: Stored) -> bool:
    """Return whether the right item follows; after one that was not stored, any item of the model."""
    if not following:
        return False
    if reasoning_id in stored.follows:
        return following[0].get("id") == stored.follows[reasoning_id]
    return kind(following[0]) in ("function_call", "reasoning") or following[0].get("role") == "assistant"


def _check_known(item: Item, stored: Stored) -> None:
    kept = stored.reasoning.get(item["id"])
    if kept is None or (not kept and not item.get("encrypted_content")):
        hint = (
            " Items are not persisted when `store` is set to false. Try again with `store` set to true, or "
            "remove this item from your input."
            if kept is False
            else ""
        )
        raise ApiError(f"Item with id '{item['id']}' not found.{hint}", param="input", status=404)
