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

from typing import Any

import yaml
from pydantic import Field, ValidationError

from agent.errors import ModelError
from agent.scripted.conversation import Answer, Conversation
from agent.scripted.rules import NoMatchError, Part, Rule


class Script(Part):
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
        raise ModelError("; ".join(lines)) from error


def _place(loc: tuple[int | str, ...], data: dict[str, Any]) -> str:
    match loc:
        case ("rules", int(index), *rest):
            rule = data["rules"][index]
            title = rule.get("name", f"#{index + 1}") if isinstance(rule, dict) else f"#{index + 1}"
            return ", ".join([f"rule {title}", *([".".join(map(str, rest))] if rest else [])])
        case _:
            return ".".join(map(str, loc))
