"""Checks a request body against the TypedDicts of the installed `openai` package.

Those are generated from OpenAI's own specification, so what they allow is what the API documents. Stricter
than the service in one point: an unknown key is refused at every depth, everywhere.
"""

import collections.abc
import functools
import types
from typing import Any, Literal, Required, Union, get_args, get_origin

# From typing_extensions: the package's types are made with its TypedDict.
from typing_extensions import get_type_hints, is_typeddict

from support.openai_api.errors import ApiError, invalid_value

KINDS: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    type(None): "null",
}
UNIONS = (Union, types.UnionType)
TAGS = ("type", "role")
OPTIONAL = {
    "ResponseOutputMessageParam": {"id", "status"},
    "FunctionToolParam": {"parameters", "strict"},
    "ResponseInputImageParam": {"detail"},
}
"""Keys that the types require and the service does not."""


def check(value: Any, shape: Any, path: str) -> None:
    """Refuse a value that its type does not allow.

    Raises:
        ApiError: with the path of the first place that is wrong.
    """
    origin, arguments = get_origin(shape), get_args(shape)
    if shape in (Any, object):
        return
    if is_typeddict(shape):
        _check_object(value, shape, path)
    elif origin in UNIONS:
        _check_union(value, arguments, path)
    elif origin is Literal:
        _check_literal(value, arguments, path)
    elif origin in (list, collections.abc.Iterable):
        _expect(value, list, path)
        for index, item in enumerate(value):
            check(item, arguments[0], f"{path}[{index}]")
    elif origin is dict:
        _expect(value, dict, path)
        for key, item in value.items():
            check(item, arguments[1], f"{path}.{key}")
    else:
        _expect(value, shape, path)


def _check_object(value: Any, shape: Any, path: str) -> None:
    _expect(value, dict, path)
    fields = _fields(shape)
    for key in sorted(_required(shape) - value.keys()):
        place = _join(path, key)
        raise ApiError(
            f"Missing required parameter: '{place}'.", param=place, code="missing_required_parameter"
        )
    for key, item in value.items():
        place = _join(path, key)
        if key not in fields:
            raise ApiError(f"Unknown parameter: '{place}'.", param=place, code="unknown_parameter")
        check(item, fields[key], place)


def _check_union(value: Any, members: tuple[Any, ...], path: str) -> None:
    if value is None and type(None) in members:
        return
    members = tuple(_flat(member for member in members if member is not type(None)))
    if isinstance(value, dict) and (objects := [one for one in members if is_typeddict(one)]):
        check(value, _member(value, objects, path), path)
        return
    fitting = [member for member in members if _accepts(value, member)]
    literals = [member for member in fitting if get_origin(member) is Literal]
    if literals and len(literals) == len(fitting):
        _check_literal(value, tuple(v for member in literals for v in get_args(member)), path)
    elif fitting:
        check(value, next(m for m in fitting if get_origin(m) is not Literal), path)
    else:
        raise _wrong_kind(value, " or ".join(sorted({_kind(m) for m in members})), path)


def _member(value: dict[str, Any], members: list[Any], path: str) -> Any:
    """Return the member of a union that the value's `type` and `role` choose."""
    for tag in TAGS:
        tagged = [(one, get_args(_fields(one)[tag])) for one in members if tag in _fields(one)]
        if not tagged:
            continue
        given = value.get(tag)
        if given is None:
            # A message of the Responses API may leave its type out.
            untyped = [one for one in members if tag not in _required(one)]
            if not untyped:
                place = _join(path, tag)
                raise ApiError(
                    f"Missing required parameter: '{place}'.", param=place, code="missing_required_parameter"
                )
            members = untyped
            continue
        fitting = [one for one, values in tagged if given in values]
        if not fitting:
            supported = list(dict.fromkeys(str(v) for _, values in tagged for v in values))
            raise invalid_value(_join(path, tag), given, supported)
        members = fitting
    return _of_equal_tags(value, members)


def _of_equal_tags(value: dict[str, Any], members: list[Any]) -> Any:
    """Tell members apart that differ neither in type nor in role: the assistant's messages hold output."""
    content = value.get("content")
    if value.get("role") == "assistant" and isinstance(content, list):
        return next((one for one in members if one.__name__ == "ResponseOutputMessageParam"), members[0])
    return next((one for one in members if value.keys() <= _fields(one).keys()), members[0])


def _check_literal(value: Any, values: tuple[Any, ...], path: str) -> None:
    if value not in values or isinstance(value, bool) != isinstance(values[0], bool):
        raise invalid_value(path, value, [str(one) for one in values])


def _expect(value: Any, kind: type, path: str) -> None:
    if not _accepts(value, kind):
        raise _wrong_kind(value, KINDS.get(kind, str(kind)), path)


def _accepts(value: Any, shape: Any) -> bool:
    origin = get_origin(shape)
    if shape in (Any, object):
        return True
    if is_typeddict(shape) or origin is dict or shape is dict:
        return isinstance(value, dict)
    if origin in (list, collections.abc.Iterable) or shape is list:
        return isinstance(value, list)
    if origin is Literal:
        return isinstance(value, type(get_args(shape)[0]))
    if shape is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, shape) and (shape is bool or not isinstance(value, bool))


def _wrong_kind(value: Any, wanted: str, path: str) -> ApiError:
    got = KINDS.get(type(value), type(value).__name__)
    return ApiError(
        f"Invalid type for '{path}': expected {wanted}, but got {got} instead.",
        param=path,
        code="invalid_type",
    )


def _kind(shape: Any) -> str:
    origin = get_origin(shape)
    if is_typeddict(shape) or origin is dict:
        return "an object"
    if origin in (list, collections.abc.Iterable):
        return "an array"
    return KINDS.get(type(get_args(shape)[0]) if origin is Literal else shape, "another type")


def _flat(members: Any) -> Any:
    for member in members:
        if get_origin(member) in UNIONS:
            yield from _flat(get_args(member))
        else:
            yield member


@functools.cache
def _fields(shape: Any) -> dict[str, Any]:
    return get_type_hints(shape)


@functools.cache
def _required(shape: Any) -> set[str]:
    # Not `__required_keys__`: with annotations that are strings it does not see `Required`.
    hints = get_type_hints(shape, include_extras=True)
    return {key for key, hint in hints.items() if get_origin(hint) is Required} - OPTIONAL.get(
        shape.__name__, set()
    )


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
