"""The rules of a script: conditions, values, answers, mistakes."""

from collections import Counter
from typing import Any

import pytest

from agent.errors import ModelError
from agent.scripted.conversation import Answer, Conversation
from agent.scripted.script import Script, parse

OTHERWISE = {"name": "otherwise", "say": "otherwise"}


def script(*rules: dict[str, Any], **more: Any) -> Script:
    """Return a script of these rules."""
    return parse({"rules": [*rules], **more}, name="test", file="test.yaml")


def says(when: dict[str, Any], conversation: Conversation) -> bool:
    """Tell whether a rule with this condition answers."""
    return script({"name": "r", "when": when, "say": "yes"}, OTHERWISE).answer(conversation).text == "yes"


ASKED = Conversation(human="first line\nread a.txt", system="You help.", tools=frozenset({"read_file"}))
READ = Conversation(
    human="read a.txt",
    tools=frozenset({"read_file"}),
    results=(("list_files", "a.txt"), ("read_file", "old"), ("read_file", "new")),
    calls=Counter(read_file=2, list_files=1),
)


@pytest.mark.parametrize(
    ("when", "conversation", "expected"),
    [
        ({}, ASKED, True),
        ({"tools": "read_file"}, ASKED, True),
        ({"tools": ["read_file", "write_file"]}, ASKED, False),
        ({"system": "^You"}, ASKED, True),
        ({"human": "^read"}, ASKED, True),
        ({"human": ["^read", "a\\.txt$"]}, ASKED, True),
        ({"human": ["^read", "b\\.txt$"]}, ASKED, False),
        ({"after": "human"}, ASKED, True),
        ({"after": "read_file"}, ASKED, False),
        ({"after": ["human", "read_file"]}, READ, True),
        ({"after": "human"}, READ, False),
        ({"results": {"read_file": "new"}}, READ, True),
        ({"results": {"read_file": "old"}}, READ, False),
        ({"results": {"list_files": "a.txt"}}, READ, True),
        ({"results": {"*": "a.txt"}}, READ, False),
        ({"results": {"run_python": ""}}, READ, False),
        ({"calls": {"read_file": 2, "run_python": 0}}, READ, True),
        ({"calls": {"read_file": "2+"}}, READ, True),
        ({"calls": {"read_file": "3+"}}, READ, False),
    ],
)
def test_condition_holds_or_not(when: dict[str, Any], conversation: Conversation, expected: bool) -> None:
    """Each kind of condition is met by what the conversation holds and by nothing else."""
    assert says(when, conversation) is expected


def test_first_matching_rule_answers() -> None:
    """Rules are tried in order; later ones that match too have no say."""
    rules = script({"name": "a", "when": {"human": "no"}, "say": "a"}, {"name": "b", "say": "b"}, OTHERWISE)
    assert rules.answer(ASKED).text == "b"


def test_captures_fill_text_and_arguments_at_any_depth() -> None:
    """A named group's text stands wherever its name does; a value is not searched for templates again."""
    rules = script(
        {
            "name": "r",
            "when": {"human": "(?P<verb>read|write) (?P<path>\\S+)( as (?P<mode>\\w+))?"},
            "say": "{{verb}}{{mode}} {{ path }}",
            "call": {"tool": "read_file", "args": {"path": "{{path}}", "more": [{"py": "{{path|py}}"}, 3]}},
        }
    )
    tools = frozenset({"read_file"})
    assert rules.answer(Conversation(human="read {{verb}}'", tools=tools)) == Answer(
        "read {{verb}}'", (("read_file", {"path": "{{verb}}'", "more": [{"py": '"{{verb}}\'"'}, 3]}),)
    )


def test_shell_filter_keeps_a_value_one_word() -> None:
    """What the human wrote cannot become a second command."""
    rules = script(
        {"name": "r", "when": {"human": "show (?P<file>.+)"}, "say": "cat {{file|sh}}"},
    )
    assert rules.answer(Conversation(human="show a; rm b")).text == "cat 'a; rm b'"


@pytest.mark.parametrize(("text", "expected"), [("a(1) b", "a(2) b"), ("b", "?"), ("a(1) a(1)", "?")])
def test_replacement_needs_its_place_exactly_once(text: str, expected: str) -> None:
    """A rule whose text to replace is missing or ambiguous does not match."""
    rules = script(
        {"name": "r", "let": {"new": {"in": "human", "replace": "a(1)", "with": "a(2)"}}, "say": "{{new}}"},
        {"name": "s", "say": "?"},
    )
    assert rules.answer(Conversation(human=text)).text == expected


def test_rule_that_calls_a_tool_needs_it_on_offer() -> None:
    """A model can only call what it is offered."""
    rules = script({"name": "r", "call": {"tool": "run_python"}}, OTHERWISE)
    assert rules.answer(ASKED).text == "otherwise"
    assert rules.answer(Conversation(tools=frozenset({"run_python"}))).calls == (("run_python", {}),)


def test_collected_list_holds_the_items_whose_condition_holds() -> None:
    """A list argument is put together from what was seen; with nothing seen the rule does not match."""
    items = [
        {"when": {"human": f"bug in (?P<file>{name})"}, "item": {"file": "{{file}}"}} for name in ("x", "y")
    ]
    rules = script(
        {"name": "r", "call": {"tool": "Plan", "args": {"summary": "s"}, "collect": {"steps": items}}},
        OTHERWISE,
    )
    tools = frozenset({"Plan"})
    answer = rules.answer(Conversation(human="bug in y", tools=tools))
    assert answer.calls == (("Plan", {"summary": "s", "steps": [{"file": "y"}]}),)
    assert rules.answer(Conversation(human="no bug", tools=tools)).text == "otherwise"


def test_unforeseen_conversation_gets_a_sentence_that_names_the_file() -> None:
    """When no rule matches the answer says so, and where to add one."""
    answer = script({"name": "r", "when": {"human": "never"}, "say": "x"}).answer(ASKED)
    assert "test.yaml" in answer.text
    assert answer.calls == ()


def test_turn_with_too_many_calls_is_ended() -> None:
    """A rule that calls a tool whatever happens cannot keep an agent in a loop."""
    rules = script({"name": "r", "call": {"tool": "t"}}, max_calls=3)
    assert rules.answer(Conversation(tools=frozenset("t"), calls=Counter(t=2))).calls
    ended = rules.answer(Conversation(tools=frozenset("t"), calls=Counter(t=3)))
    assert not ended.calls
    assert "no answer" in ended.text


@pytest.mark.parametrize(
    ("rule", "place", "reason"),
    [
        ({"name": "r"}, "rule r", "needs `say` or `call`"),
        ({"name": "r", "say": "x", "when": {"humann": "x"}}, "rule r, when.humann", "not permitted"),
        ({"name": "r", "say": "x", "when": {"human": "("}}, "rule r, when.human", "unterminated"),
        ({"name": "r", "say": "{{x}}"}, "rule r", "say: nothing here is called x"),
        ({"name": "r", "say": "{{human|up}}"}, "rule r", "filter: nothing here is called up"),
        ({"name": "r", "call": {"tool": "t", "args": {"a": ["{{x}}"]}}}, "rule r", "call.args: nothing"),
        (
            {"name": "r", "say": "x", "let": {"b": {"in": "x", "replace": "y", "with": "z"}}},
            "rule r",
            "let.b.in",
        ),
        ({"say": "x"}, "rule #1, name", "Field required"),
    ],
)
def test_mistake_in_a_script_is_named_with_its_place(rule: dict[str, Any], place: str, reason: str) -> None:
    """File, rule and field of a mistake are in the one error that is raised."""
    with pytest.raises(ModelError) as caught:
        script(rule)
    assert str(caught.value).startswith(f"test.yaml: {place}")
    assert reason in str(caught.value)


@pytest.mark.parametrize("source", ["rules: [", "just words", "", "rules: []", "- 1"])
def test_text_that_is_no_script_is_refused(source: str) -> None:
    """YAML that is broken, or is not a list of rules, raises the same error."""
    with pytest.raises(ModelError, match=r"^test\.yaml: "):
        parse(source, name="test", file="test.yaml")


def test_script_survives_serialisation() -> None:
    """A script written as JSON and read again is the same script."""
    rules = script(
        {
            "name": "r",
            "when": {"human": "(?P<a>x)", "calls": {"t": "1+"}},
            "let": {"b": {"in": "a", "replace": "x", "with": "y"}},
            "call": {"tool": "t", "collect": {"l": [{"when": {"human": "x"}, "item": "{{a}}"}]}},
        }
    )
    assert Script.model_validate_json(rules.model_dump_json()) == rules
