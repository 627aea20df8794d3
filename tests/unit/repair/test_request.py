"""The input: what is refused and why, and what is filled in."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from agent.errors import InputError
from agent.repair.request import DEFAULT_TEST_COMMAND, checked, checked_project
from agent.repair.tree import PROTECTED


@pytest.mark.parametrize(
    ("project", "words"),
    [
        (None, "`project` is missing"),
        ({}, "`project` is empty"),
        ([], "`project` is not a map"),
        ({"a": "x", "a/b": "y"}, "'a' both as a file and as a folder, in 'a/b'"),
        ({"n" * 300: "x"}, "a name of more than 255 bytes"),
        ({"a": "x", ".git/hooks/x": "x"}, "'.git/hooks/x', which is git's own"),
        ({"a": 1}, "'a' to int"),
        ({"../a": ""}, "'../a'"),
        ({"/etc/passwd": ""}, "'/etc/passwd'"),
        ({"a//b": ""}, "'a//b'"),
        ({"a\0b": ""}, "a\\x00b"),
        ({"\ud800": ""}, "no file name can have"),
        ({"a": "x" * 1_000_001}, "1000001 bytes"),
    ],
)
def test_checked_refuses_a_project_with_a_reason(project: Any, words: str) -> None:
    """Bad input is one error that names the file."""
    with pytest.raises(InputError) as caught:
        checked_project(project)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"test_command": 1}, "`test_command` is int"),
        ({"setup_command": "a\0b"}, "`setup_command` holds NUL"),
        ({"goal": "x" * 20_001}, "`goal` holds NUL characters or more than 20000"),
        ({"workdir": "/srv"}, "`workdir`: '/srv'"),
        ({"workdir": "/"}, "`workdir`: '/'"),
        ({"workdir": "../up"}, "`workdir`: '../up'"),
        ({"workdir": "missing"}, "`project` has no such folder"),
        ({"protect": "tests"}, "`protect` is a list"),
        ({"protect": [""]}, "`protect` is a list"),
        ({"limits": {"tries": 0}}, "`limits` cannot be used: tries: Input should be greater"),
        ({"limits": {"tries": True}}, "`limits` cannot be used: tries: Input should be a valid integer"),
        ({"limits": {"hours": 1}}, "`limits` cannot be used: hours: Extra inputs"),
        ({"limits": 3}, "`limits` cannot be used: limits: "),
    ],
)
def test_checked_refuses_words_and_limits_with_a_reason(more: dict[str, Any], words: str) -> None:
    """Each is named, with what is allowed."""
    with pytest.raises(InputError) as caught:
        checked({"project": {"a": "x"}, **more})
    assert words in str(caught.value)


def test_checked_fills_in_defaults() -> None:
    """Only the default test command assumes a language."""
    assert checked({"project": {"a": "x"}}) == {
        "project": {"a": "x"},
        "archive": None,
        "test_command": DEFAULT_TEST_COMMAND,
        "setup_command": "",
        "goal": "",
        "workdir": "",
        "protect": list(PROTECTED),
        "limits": {"tries": 3, "steps": 40, "time_s": 3600},
    }


def test_checked_takes_the_goal_from_what_the_human_said() -> None:
    """Chat front ends send messages; words of a decision on an earlier plan are no goal."""
    said = [HumanMessage("make it green"), AIMessage("ok"), HumanMessage("not so", name="decision")]
    assert checked({"project": {"a": "x"}, "messages": said})["goal"] == "make it green"
    assert checked({"project": {"a": "x"}, "messages": said, "goal": "mine"})["goal"] == "mine"


def test_checked_prefers_a_project_to_an_archive() -> None:
    """A project that is sent takes the place of one that an earlier run repaired, or that is gone.

    Beside one that no run has used it is refused: either could be meant.
    """
    archive = {"sha256": "0", "size_bytes": 1}
    used = checked({"archive": archive, "sandbox_id": "s"})["archive"]
    assert used == archive | {"used": True}
    assert checked({"archive": used, "sandbox_id": "s"})["archive"] == used
    assert checked({"project": {"a": "x"}, "archive": used, "sandbox_id": "s"})["archive"] is None
    with pytest.raises(InputError, match="`project` came beside an archive"):
        checked({"project": {"a": "x"}, "archive": archive, "sandbox_id": "s"})
    with pytest.raises(InputError, match="is gone with its sandbox"):
        checked({"archive": archive, "sandbox_id": ""})
    assert checked({"project": {"a": "x"}, "archive": archive})["archive"] is None


@pytest.mark.parametrize("workdir", ["", ".", "./", "./a", "a/"])
def test_checked_takes_a_folder_however_it_is_written(workdir: str) -> None:
    """The project itself or a folder in it."""
    assert checked({"project": {"a/b": "x"}, "workdir": workdir})["workdir"] in {"", "a"}
