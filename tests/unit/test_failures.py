"""What becomes of exceptions in tool calls."""

import logging

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from agent.errors import AgentError, SandboxQuotaError, SandboxUnreachableError
from agent.failures import FATES, fate, told, tool_errors
from support.scripted_rules import model_of_rules


def _tree(kind: type[Exception]) -> set[type[Exception]]:
    return {kind}.union(
        *(_tree(child) for child in kind.__subclasses__() if child.__module__ == "agent.errors")
    )


def test_every_error_of_the_package_is_in_the_table() -> None:
    """A new error has its fate decided, not inherited by accident."""
    assert _tree(AgentError) <= set(FATES)


@pytest.mark.parametrize(
    ("exc", "expected"),
    [
        (SandboxQuotaError("q"), "ends the run"),
        (SandboxUnreachableError("u"), "is told"),
        (FileNotFoundError("there is no a.txt"), "is told"),
        (TimeoutError("longer than 5 s"), "is told"),
        (ConnectionRefusedError("10.0.0.7"), "is hidden"),
        (KeyError("sk-secret"), "is hidden"),
    ],
)
def test_the_most_derived_class_decides(exc: Exception, expected: str) -> None:
    """Also for classes that the table does not name."""
    assert fate(exc) == expected


def test_an_unknown_exception_is_logged_and_its_text_kept_from_the_model(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The class's name is all that leaves the server."""
    with caplog.at_level(logging.ERROR):
        words = told(ValueError("postgres://admin:hunter2@db"))
    assert words
    assert "ValueError" in words
    assert "hunter2" not in words
    assert "hunter2" in caplog.text


@tool
def broken(kind: str) -> str:
    """Fail in one way or another."""
    raise {"quota": SandboxQuotaError("20 run"), "gone": OSError("/srv/secret.txt")}[kind]


def agent(kind: str) -> object:
    """Return an agent that calls the broken tool once."""
    rules = [
        {"name": "call", "when": {"after": "human"}, "call": {"tool": "broken", "args": {"kind": kind}}},
        {"name": "end", "say": "{{result}}"},
    ]
    return create_agent(model_of_rules(rules), [broken], middleware=[tool_errors()])


async def test_an_agents_tools_fail_by_the_table() -> None:
    """Of somebody else's tools, too: an answer without the text, or the end of the run."""
    asked = {"messages": [HumanMessage("go")]}
    state = await agent("gone").ainvoke(asked)  # type: ignore[attr-defined]
    result = state["messages"][2]
    assert (result.status, "OSError" in result.text, "secret" in result.text) == ("error", True, False)
    with pytest.raises(SandboxQuotaError, match="20 run"):
        await agent("quota").ainvoke(asked)  # type: ignore[attr-defined]
