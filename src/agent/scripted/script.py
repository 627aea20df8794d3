"""Scripts: rules that answer a conversation, read from YAML. Nothing here knows langchain.

A script is a list of `rules`; the first one that matches the conversation answers. "So far" means since the
last message of the human, where a turn begins. Patterns are Python regular expressions, searched for in the
whole text, `^` and `$` at each line; of a list of patterns each must be found.

    - name: fix-rounding
      when:                              # each condition given must hold
        tools: [list_files]              # tools on offer (those the rule calls are always asked for)
        system: ^You carry out           # the system prompt
        human: '^File: (?P<path>\\S+)'    # the last message of the human; named groups become values
        after: read_file                 # whose message is the newest: `human` or a tool
        results:                         # a tool's latest result so far; "*" is the latest of any tool
          read_file: '(?s)<file [^>]*>\\n(?P<text>.*)</file>'
        calls: {read_file: 1, write_file: 0, run_command: 2+}    # times called so far
      let:                               # more values; no match unless `replace` is there exactly once
        fixed: {in: text, replace: int(x), with: round(x)}
      say: Rounding in {{path}}.         # a text, and/or
      call:                              # a call or a list of calls
        tool: write_file
        args: {path: "{{path}}", content: "{{fixed}}"}
        collect:                         # list arguments: the items whose `when` holds; if none, no match
          tags: [{when: {human: urgent}, item: urgent}]

Always there: `{{human}}` and `{{result}}` (the latest of any tool). `{{value|py}}` writes a Python literal,
`{{value|sh}}` a single word for the shell.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from agent.errors import ModelError

HUMAN = "human"
ANY_TOOL = "*"
GIVEN = frozenset({"human", "result"})
FILTERS: dict[str, Callable[[str], str]] = {"py": repr, "sh": shlex.quote}
TEMPLATE = re.compile(r"\{\{\s*(\w+)\s*(?:\|\s*(\w+)\s*)?\}\}")


class NoMatchError(Exception):
    """A rule's conditions hold, but its answer cannot be put together: the rule does not match after all."""


@dataclass(frozen=True)
class Conversation:
    """What a rule may ask about; results and calls are those since the last message of the human."""

    human: str = ""
    system: str = ""
    tools: frozenset[str] = frozenset()
    results: tuple[tuple[str, str], ...] = ()
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def newest(self) -> str:
        """Whose message is the newest: the human's or a tool's."""
        return self.results[-1][0] if self.results else HUMAN

    def result(self, tool: str) -> str | None:
        """Return the text of a tool's latest result, or None if there is none."""
        return next((text for name, text in reversed(self.results) if tool in (name, ANY_TOOL)), None)


@dataclass(frozen=True)
class Answer:
    """What the model says, and the tools it calls with which arguments."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


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


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True)


class When(_Part):
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


class Let(_Part):
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


class Item(_Part):
    """An element of a list argument, there only if its condition holds."""

    when: When
    item: Any


class Call(_Part):
    """A tool and its arguments."""

    tool: str
    args: dict[str, Any] = {}
    collect: dict[str, tuple[Item, ...]] = {}

    def render(self, values: Mapping[str, str], conversation: Conversation) -> tuple[str, dict[str, Any]]:
        """Return the tool's name and the arguments filled in."""
        args = {name: _fill(value, values) for name, value in self.args.items()}
        for name, items in self.collect.items():
            args[name] = list(_collected(items, values, conversation))
            if not args[name]:
                raise NoMatchError
        return self.tool, args


class Rule(_Part):
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
        return Answer(_fill(self.say, values), calls)

    @model_validator(mode="after")
    def _says_something_it_knows(self) -> Self:
        if not (self.say or self.call):
            raise ValueError("a rule needs `say` or `call`")
        known = GIVEN | self.when.names()
        for name, let in self.let.items():
            _check({let.source} - known, f"let.{name}.in")
            known |= {name}
        _check(_used(self.say) - known, "say")
        for call in self.call:
            _check(_used(call.args) - known, "call.args")
            for items in call.collect.values():
                for item in items:
                    _check(_used(item.item) - known - item.when.names(), "call.collect")
        return self


class Script(_Part):
    """A named list of rules; `file` is where a reader finds them."""

    name: str
    file: str
    max_calls: int = Field(default=30, ge=1)
    rules: tuple[Rule, ...] = Field(min_length=1)

    def answer(self, conversation: Conversation) -> Answer:
        """Return the first matching rule's answer, or a sentence that says there is none.

        A turn with `max_calls` tool calls gets no more answers from rules: a script cannot loop for ever.
        """
        if conversation.calls.total() < self.max_calls:
            for rule in self.rules:
                try:
                    return rule.answer(conversation)
                except NoMatchError:
                    continue
        return Answer(f"I am a scripted model, and my script ({self.file}) has no answer for this.")


def parse(source: str | list[Any] | dict[str, Any], *, name: str, file: str) -> Script:
    """Read a script from YAML text, from a mapping with `rules` or from the list of rules.

    Raises:
        ModelError: it is not a script; one line for each mistake, naming file, rule and field.
    """
    try:
        data = yaml.safe_load(source) if isinstance(source, str) else source
    except yaml.YAMLError as error:
        raise ModelError(f"{file}: not YAML: {error}") from error
    data = data if isinstance(data, dict) else {"rules": data}
    try:
        return Script.model_validate({**data, "name": name, "file": file})
    except ValidationError as error:
        lines = (f"{file}: {_place(e['loc'], data)}: {e['msg']}" for e in error.errors())
        raise ModelError("\n".join(lines)) from error


def _place(loc: tuple[int | str, ...], data: dict[str, Any]) -> str:
    match loc:
        case ("rules", int(index), *rest):
            rule = data["rules"][index]
            title = rule.get("name", f"#{index + 1}") if isinstance(rule, dict) else f"#{index + 1}"
            return ", ".join([f"rule {title}", *([".".join(map(str, rest))] if rest else [])])
        case _:
            return ".".join(map(str, loc))


def _holds(times: int | str, count: int) -> bool:
    return count == times if isinstance(times, int) else count >= int(times.rstrip("+"))


def _collected(
    items: tuple[Item, ...], values: Mapping[str, str], conversation: Conversation
) -> Iterator[Any]:
    for item in items:
        try:
            yield _fill(item.item, {**values, **item.when.match(conversation)})
        except NoMatchError:
            continue


def _fill(value: Any, values: Mapping[str, str]) -> Any:
    """Fill the templates in a value, however deep; values are not searched for templates again."""
    if isinstance(value, str):
        return TEMPLATE.sub(lambda found: FILTERS.get(found[2], str)(values[found[1]]), value)
    if isinstance(value, dict):
        return {key: _fill(inner, values) for key, inner in value.items()}
    return [_fill(inner, values) for inner in value] if isinstance(value, list) else value


def _used(value: Any) -> set[str]:
    """Return the names a template asks for, and refuse a filter that does not exist."""
    if isinstance(value, str):
        found = TEMPLATE.findall(value)
        _check({name for _, name in found if name} - FILTERS.keys(), "filter")
        return {name for name, _ in found}
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(_used, inner))


def _check(unknown: set[str], where: str) -> None:
    if unknown:
        raise ValueError(f"{where}: nothing here is called {', '.join(sorted(unknown))}")
