"""A scripted model for one test: its answers as rules, data that stands beside what is tested.

A rule answers where its conditions hold, the first one that does:

    - name: fix
      when:                              # each condition given must hold; patterns are searched for
        tools: [list_files]              # on offer
        system: ^You carry out           # the system prompt
        human: '^File: (?P<path>\\S+)'    # the last message of the human; named groups become values
        after: read_file                 # whose message is the newest: `human` or a tool
        results: {read_file: 'text'}     # a tool's latest result; "*" is the latest of any tool
        calls: {write_file: 0, run_command: 2+}    # times called in this turn
      say: Rounding in {{path}}.         # a text, and/or
      call: {tool: write_file, args: {path: "{{path}}"}}    # a call or a list of calls

Always there: `{{human}}` and `{{result}}`, the latest of any tool.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from agent.scripted.conversation import Answer, Conversation, Script, search
from agent.scripted.model import ScriptedChatModel


def model_of_rules(rules: str | list[Any], *, max_calls: int = 30) -> ScriptedChatModel:
    """Return a model that answers by rules, YAML text or plain data."""
    data = yaml.safe_load(rules) if isinstance(rules, str) else rules
    return ScriptedChatModel(name="inline", scripts=(script_of(data),), max_calls=max_calls)


def script_of(rules: list[Any]) -> Script:
    """Return the script that rules make."""

    def script(talk: Conversation) -> Iterator[Answer]:
        for rule in rules:
            values = _matched(rule.get("when", {}), talk)
            if values is not None:
                calls = (
                    (call["tool"], _filled(call.get("args", {}), values)) for call in _listed(rule, "call")
                )
                yield Answer(_filled(rule.get("say", ""), values), tuple(calls))

    return script


def _matched(when: Mapping[str, Any], talk: Conversation) -> dict[str, str] | None:
    """Return the values if the conditions hold, else None."""
    unknown = when.keys() - {"tools", "system", "human", "after", "results", "calls"}
    assert not unknown, f"a rule has no condition {unknown}"
    results = dict(talk.results)
    if (
        not talk.tools.issuperset(_listed(when, "tools"))
        or talk.newest not in (_listed(when, "after") or [talk.newest])
        or not all(_holds(str(times), talk.calls[tool]) for tool, times in when.get("calls", {}).items())
        or not results.keys() >= when.get("results", {}).keys() - {"*"}
    ):
        return None
    searched = [(pattern, talk.system) for pattern in _listed(when, "system")]
    searched += [(pattern, talk.human) for pattern in _listed(when, "human")]
    searched += [
        (pattern, talk.result if tool == "*" else results[tool])
        for tool in when.get("results", {})
        for pattern in _listed(when["results"], tool)
    ]
    values = {"human": talk.human, "result": talk.result}
    for pattern, text in searched:
        if not (found := search(pattern, text)):
            return None
        values |= found.groupdict(default="")
    return values


def _listed(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key, [])
    return value if isinstance(value, list) else [value]


def _holds(times: str, count: int) -> bool:
    return count >= int(times[:-1]) if times.endswith("+") else count == int(times)


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: values[found[1]], value)
    if isinstance(value, dict):
        return {key: _filled(inner, values) for key, inner in value.items()}
    return [_filled(inner, values) for inner in value] if isinstance(value, list) else value
