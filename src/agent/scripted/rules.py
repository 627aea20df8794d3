"""The rules of a script: conditions on a conversation, and the answer when they hold.

`agent.scripted.script` shows what they look like in YAML.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from agent.scripted.conversation import ANY_TOOL, Answer, Conversation
from agent.scripted.template import check, fill, used

GIVEN = frozenset({"human", "result"})


class NoMatchError(Exception):
    """A rule's conditions hold, but its answer cannot be put together: the rule does not match after all."""


def _tuple(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else (value,)


def _pattern(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return re.compile(value, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error


Pattern = Annotated[re.Pattern[str], BeforeValidator(_pattern)]
Patterns = Annotated[tuple[Pattern, ...], BeforeValidator(_tuple)]
Names = Annotated[tuple[str, ...], BeforeValidator(_tuple)]
Times = Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern=r"^\d+\+$")]


class Part(BaseModel):
    """Part of a script; takes no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True)


class When(Part):
    """Conditions on a conversation; those not given hold."""

    tools: Names = ()
    system: Patterns = ()
    human: Patterns = ()
    after: Names = ()
    results: dict[str, Patterns] = {}
    calls: dict[str, Times] = {}

    def match(self, conversation: Conversation) -> dict[str, str]:
        """Return the values captured by named groups; a group that took no part is empty."""
        if (
            not conversation.tools.issuperset(self.tools)
            or (self.after and conversation.newest not in self.after)
            or not all(_holds(times, conversation.calls[tool]) for tool, times in self.calls.items())
        ):
            raise NoMatchError
        values: dict[str, str] = {}
        for patterns, text in self._searches(conversation):
            for pattern in patterns:
                if text is None or not (found := pattern.search(text)):
                    raise NoMatchError
                values |= found.groupdict(default="")
        return values

    def names(self) -> set[str]:
        """Return the names of the values that `match` captures."""
        searched = (pattern for patterns, _ in self._searches(Conversation()) for pattern in patterns)
        return {name for pattern in searched for name in pattern.groupindex}

    def _searches(self, conversation: Conversation) -> Iterator[tuple[Patterns, str | None]]:
        yield self.system, conversation.system
        yield self.human, conversation.human
        for tool, patterns in self.results.items():
            yield patterns, conversation.result(tool)


class Let(Part):
    """A text with one place replaced."""

    source: str = Field(alias="in")
    replace: str = Field(min_length=1)
    by: str = Field(alias="with")

    def value(self, values: Mapping[str, str]) -> str:
        """Return the new text; the place must be there exactly once."""
        text = values[self.source]
        if text.count(self.replace) != 1:
            raise NoMatchError
        return text.replace(self.replace, self.by)


class Item(Part):
    """An element of a list argument, there only if its condition holds."""

    when: When
    item: Any


class Call(Part):
    """A tool and its arguments."""

    tool: str
    args: dict[str, Any] = {}
    collect: dict[str, tuple[Item, ...]] = {}

    def render(self, values: Mapping[str, str], conversation: Conversation) -> tuple[str, dict[str, Any]]:
        """Return the tool's name and the arguments filled in."""
        args = {name: fill(value, values) for name, value in self.args.items()}
        for name, items in self.collect.items():
            args[name] = list(_collected(items, values, conversation))
            if not args[name]:
                raise NoMatchError
        return self.tool, args


class Rule(Part):
    """One answer and the conditions it is given on."""

    name: str
    when: When = When()
    let: dict[str, Let] = {}
    say: str = ""
    call: Annotated[tuple[Call, ...], BeforeValidator(_tuple)] = ()

    def answer(self, conversation: Conversation) -> Answer:
        """Return the answer; `NoMatchError` if this rule has none for the conversation."""
        if not all(call.tool in conversation.tools for call in self.call):
            raise NoMatchError
        values = {"human": conversation.human, "result": conversation.result(ANY_TOOL) or ""}
        values |= self.when.match(conversation)
        for name, let in self.let.items():
            values[name] = let.value(values)
        calls = tuple(call.render(values, conversation) for call in self.call)
        return Answer(fill(self.say, values), calls)

    @model_validator(mode="after")
    def _says_something_it_knows(self) -> Self:
        if not (self.say or self.call):
            raise ValueError("a rule needs `say` or `call`")
        known = GIVEN | self.when.names()
        for name, let in self.let.items():
            check({let.source} - known, f"let.{name}.in")
            known |= {name}
        check(used(self.say) - known, "say")
        for call in self.call:
            check(used(call.args) - known, "call.args")
            for items in call.collect.values():
                for item in items:
                    check(used(item.item) - known - item.when.names(), "call.collect")
        return self


def _holds(times: int | str, count: int) -> bool:
    return count == times if isinstance(times, int) else count >= int(times.rstrip("+"))


def _collected(
    items: tuple[Item, ...], values: Mapping[str, str], conversation: Conversation
) -> Iterator[Any]:
    for item in items:
        try:
            yield fill(item.item, {**values, **item.when.match(conversation)})
        except NoMatchError:
            continue
