"""JSON of clients, of the kinds that operations expect and of all others."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2b_local.messages import MESSAGES, MessageError, parsed

_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=9)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
_NAMES = st.sampled_from(
    [
        "path",
        "depth",
        "process",
        "pid",
        "tag",
        "pty",
        "size",
        "cols",
        "input",
        "stdin",
        "envs",
        "code",
        "start",
    ]
)
_MESSAGE = st.dictionaries(_NAMES, st.dictionaries(_NAMES, _JSON, max_size=2) | _JSON, max_size=3)


@given(st.binary(max_size=30) | _JSON.map(lambda value: json.dumps(value).encode()))
def test_a_body_is_an_object_that_can_be_repeated_or_refused(raw: bytes) -> None:
    """What is taken can be sent on and shown again: no halves of characters, no NaN."""
    with contextlib.suppress(MessageError):
        assert isinstance(json.loads(json.dumps(parsed(raw), ensure_ascii=False).encode()), dict)


@given(st.sampled_from(sorted(MESSAGES)), _MESSAGE)
def test_a_message_has_known_fields_or_is_refused(operation: str, message: dict[str, object]) -> None:
    """Whatever stands in the fields, an operation gets what it knows, or the caller an error."""
    with contextlib.suppress(MessageError):
        taken = MESSAGES[operation]("", message)
        assert taken.keys() <= message.keys() | {"path", "source", "destination"}
        assert not {"op", "self"} & taken.keys()


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 100_000, b'{"a":' * 50_000, b"{", b"", b"\xff", b'{"a": NaN}', b'{"a": -Infinity}',
        b'{"a": "\\ud800"}', b'{"\\uDC00": 1}', b'{"a": "\xed\xa0\x80"}', b'{"a": ' + b"9" * 5000 + b"}",
        "{}".encode("utf-16"),
    ],
)  # fmt: skip
def test_a_body_that_is_no_json_is_refused(raw: bytes) -> None:
    """Too deep, cut short, of another encoding, or with numbers and texts that there are not."""
    with pytest.raises(MessageError, match="the body is not JSON"):
        parsed(raw)


@pytest.mark.parametrize(
    ("operation", "message", "named"),
    [
        ("stat", {"path": "a\0b"}, "path"),
        ("list", {"path": "/", "depth": "²"}, "depth"),
        ("list", {"path": "/", "depth": True}, "depth"),
        ("watch", {"path": "/", "recursive": 1}, "recursive"),
        ("process_start", {"process": {"cmd": "x", "args": "y"}}, "process.args"),
        ("process_start", {"process": {"cmd": "x", "envs": {"A=B": "y"}}}, "process.envs"),
        ("process_start", {"process": [], "pty": {}}, "process"),
        ("process_connect", {"process": {"pid": -1}}, "process.pid"),
        ("process_connect", {"process": {"pid": 2**32}}, "process.pid"),
        ("process_update", {"process": {"pid": 1}, "pty": {"size": {"cols": 65536}}}, "pty.size.cols"),
        ("process_input", {"process": {"pid": 1}, "input": {"stdin": "²"}}, "input.stdin"),
    ],
)
def test_a_field_of_another_kind_is_named(operation: str, message: dict[str, object], named: str) -> None:
    """The error says which field it is."""
    with pytest.raises(MessageError, match=f"^(each of )?{named}[ :]"):
        MESSAGES[operation]("", message)


def test_a_message_may_say_numbers_as_text_and_nothing_as_null() -> None:
    """As protocol buffers do in JSON; what is not known is left out."""
    assert MESSAGES["list"]("", {"path": None, "depth": "3", "more": {}}) == {"path": "", "depth": 3}
    assert MESSAGES["process_start"]("", {"process": {"cmd": "x", "cwd": None}, "pty": {}}) == {
        "process": {"cmd": "x"},
        "pty": {},
    }
