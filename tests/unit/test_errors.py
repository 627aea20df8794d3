"""Errors quote what others said; none of it passes for a line of a log."""

import logging
from typing import Any

import pytest

from agent.context import Context
from agent.errors import AgentError, InputError, SandboxError, SettingsError, logged
from agent.failures import told

FORGED = "gone\n2026-01-01T00:00:00Z [info     ] all is well"


@pytest.mark.parametrize("kind", [AgentError, InputError, SandboxError])
@pytest.mark.parametrize("feed", ["\n", "\r", "\x0b", "\x1b[2K", "\x85", "\u2028", "\u202e"], ids=repr)
def test_error_is_one_line_whatever_it_quotes(kind: type[AgentError], feed: str) -> None:
    """Control and invisible characters are spelled out; words of any language stay as they are."""
    text = str(kind(f"größer, 寸法{feed}next"))
    assert text.startswith("größer, 寸法\\")
    assert text.endswith("next")
    assert len(text.splitlines()) == 1


def test_error_of_settings_has_a_line_for_each_variable() -> None:
    """Whoever runs the deployment wrote them."""
    assert str(SettingsError("A\nB")) == "A\nB"


def test_exception_of_a_tool_forges_no_entry_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Each line of its traceback is marked, of those that it has and of those that it was raised from."""

    def fails() -> None:
        try:
            raise ValueError(FORGED)
        except ValueError as exc:
            raise KeyError(FORGED) from exc

    with caplog.at_level(logging.ERROR), pytest.raises(KeyError) as caught:
        fails()
    told(caught.value)
    first, *lines = caplog.messages[-1].splitlines()
    assert first == "a tool failed"
    assert any("all is well" in line for line in lines)
    assert all(line.startswith("| ") for line in lines)
    assert "fails" in logged(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"lease_s": "x", "keep": "a\nb"},
            "context: keep: Input should be 'run' or 'thread'; lease_s: Input should be a valid integer",
        ),
        ({"ask_first": "run_command"}, "context: ask_first: Input should be a valid list"),
        ({"no\nsuch": 1}, r"context: no\nsuch: Unexpected keyword argument"),
        ({"envs": ["a b"]}, "context: envs.0: String should match pattern"),
    ],
    ids=str,
)
def test_context_that_cannot_be_used_gets_one_clear_error(given: dict[str, Any], words: str) -> None:
    """One line that names each field; nothing of how it is checked."""
    with pytest.raises(InputError) as caught:
        Context(**given)
    assert str(caught.value).startswith(words)
    assert "pydantic" not in str(caught.value)
