"""Bodies that the code interpreter takes, read and refused as E2B's own, which is FastAPI, does it."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, StrictStr, ValidationError, field_validator
from starlette.requests import Request
from starlette.responses import Response

from e2b_local.bodies import whole_body
from e2b_local.inbox.wire import MAX_FRAME_BYTES

_JSON_TYPE = re.compile(r"application/([^;]*\+)?json\s*(;|$)", re.IGNORECASE)
Body = TypeVar("Body", bound=BaseModel)


class ExecuteRequest(BaseModel):
    """A cell to run; what it does not name is left out, as FastAPI does."""

    code: StrictStr
    context_id: StrictStr | None = None
    language: StrictStr | None = None
    env_vars: dict[StrictStr, StrictStr] | None = None

    @field_validator("env_vars")
    @classmethod
    def _settable(cls, variables: dict[str, str] | None) -> dict[str, str] | None:
        # E2B's own sets them in the kernel, where these fail unseen and the cell runs without them.
        for name, value in (variables or {}).items():
            if not name or "=" in name or "\0" in name + value:
                raise ValueError(f"no program can have the variable {name!r}")
        return variables


class ContextRequest(BaseModel):
    """A context to make; null means the default, too."""

    language: StrictStr | None = None
    cwd: StrictStr | None = None

    @field_validator("language", "cwd")
    @classmethod
    def _named(cls, value: str | None) -> str | None:
        if value is not None and "\0" in value:
            raise ValueError("no folder or language has a NUL in its name")
        return value


class BodyError(Exception):
    """A body is not what the route takes; `response` says where and why."""

    def __init__(self, status: int, detail: object) -> None:
        super().__init__(detail)
        self._status = status
        self._detail = detail

    def response(self) -> Response:
        """Return the reply, as FastAPI words it."""
        # ASCII: what was sent may hold half a character, which UTF-8 has no form for.
        body = json.dumps({"detail": self._detail})
        return Response(body, self._status, media_type="application/json")


async def read_body(request: Request, kind: type[Body]) -> Body:
    """Return the body of a request.

    Raises:
        BodyError: 422, a field is missing or of another type; 400, it cannot be read at all.
        ApiError: 413, it is too large.
    """
    given = _parsed(await whole_body(request, MAX_FRAME_BYTES), request.headers.get("content-type"))
    if given is None:
        raise BodyError(422, [{"type": "missing", "loc": ["body"], "msg": "Field required", "input": None}])
    try:
        return kind.model_validate(given, from_attributes=True)  # FastAPI has it so, and its words
    except ValidationError as exc:
        raise BodyError(422, [_told(error) for error in exc.errors(include_url=False)]) from exc


def _parsed(raw: bytes, content_type: str | None) -> Any:
    if not raw:
        return None
    if content_type and not _JSON_TYPE.match(content_type):
        # A web page may send this type without asking; FastAPI takes it for a text, not an object.
        return raw.decode(errors="replace")
    try:
        given = json.loads(raw)
        json.dumps(given, ensure_ascii=False).encode()
    except json.JSONDecodeError as exc:
        error = {"type": "json_invalid", "loc": ["body", exc.pos], "msg": "JSON decode error", "input": {}}
        raise BodyError(422, [error | {"ctx": {"error": exc.msg}}]) from exc
    except (ValueError, RecursionError) as exc:
        # No UTF-8, half of a character, endless digits, nested too deeply.
        raise BodyError(400, "There was an error parsing the body") from exc
    return given


def _told(error: Any) -> dict[str, object]:
    """Return one of pydantic's errors as JSON can hold it."""
    told = {
        "type": error["type"],
        "loc": ["body", *error["loc"]],
        "msg": error["msg"],
        "input": error["input"],
    }
    try:
        json.dumps(told["input"], allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        told["input"] = repr(told["input"])
    return told
