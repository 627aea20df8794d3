"""What `strict: true` asks of a JSON Schema.

Mirrors OpenAI's guide "Structured model outputs", section "Supported schemas": the root is an object, every
object closes itself and requires all it has, and some keywords are not allowed. `minLength` and `maxLength`
pass here: the guide names them only as unsupported by fine-tuned models.
"""

from collections.abc import Iterator
from typing import Any

from support.openai_api.errors import ApiError

FORBIDDEN = (
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "default",
)
Context = tuple[str, ...]


def check_strict(schema: Any, what: str, *, param: str, code: str | None) -> None:
    """Refuse a schema that strict mode does not support.

    Args:
        schema: the JSON Schema.
        what: whose it is, e.g. `function 'run'`.
        param: the place in the request.
        code: the API's code for this place.
    """
    for context, mistake in _mistakes(schema, ()):
        raise ApiError(
            f"Invalid schema for {what}: In context={context!r}, {mistake}", param=param, code=code
        )


def _mistakes(schema: Any, context: Context) -> Iterator[tuple[Context, str]]:
    if not context and (not isinstance(schema, dict) or schema.get("type") != "object"):
        kind = schema.get("type") if isinstance(schema, dict) else None
        yield context, f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    if not isinstance(schema, dict):
        return
    for keyword in FORBIDDEN:
        if keyword in schema:
            yield context, f"'{keyword}' is not permitted."
    if "$ref" in schema and len(schema) > 1:
        extra = sorted(schema.keys() - {"$ref"})
        yield context, f"$ref cannot have keywords {set(extra)!r}."
    if schema.get("type") == "object":
        yield from _object_mistakes(schema, context)
    yield from _inner(schema, context)


def _object_mistakes(schema: dict[str, Any], context: Context) -> Iterator[tuple[Context, str]]:
    if schema.get("additionalProperties") is not False:
        yield context, "'additionalProperties' is required to be supplied and to be false."
    for name in schema.get("properties", {}):
        if name not in schema.get("required", []):
            yield (
                context,
                "'required' is required to be supplied and to be an array including every key in "
                f"properties. Missing '{name}'.",
            )


def _inner(schema: dict[str, Any], context: Context) -> Iterator[tuple[Context, str]]:
    for keyword in ("properties", "$defs"):
        for name, inner in schema.get(keyword, {}).items():
            yield from _mistakes(inner, (*context, keyword, name))
    for index, inner in enumerate(schema.get("anyOf", [])):
        yield from _mistakes(inner, (*context, "anyOf", str(index)))
    if "items" in schema:
        yield from _mistakes(schema["items"], (*context, "items"))
