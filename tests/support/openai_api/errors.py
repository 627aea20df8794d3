"""The errors of OpenAI's API: one body shape, the status that goes with it."""

import re
from typing import Any


class ApiError(Exception):
    """A refusal, as the API words it.

    Args:
        message: what the client's exception shows.
        param: the place in the request, where the API names one.
        code: the machine-readable code, where the API gives one.
        status: the HTTP status; 400 unless the API uses another.
    """

    def __init__(
        self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code

    @property
    def body(self) -> dict[str, Any]:
        """The response's JSON."""
        return {
            "error": {
                "message": str(self),
                "type": "invalid_request_error",
                "param": self.param,
                "code": self.code,
            }
        }


def invalid_value(param: str, value: Any, supported: list[str]) -> ApiError:
    """Return the error for a value that is none of those supported."""
    quoted = [f"'{one}'" for one in supported]
    if len(quoted) == 2:
        listed = " and ".join(quoted)
    else:
        listed = ", ".join([*quoted[:-1], f"and {quoted[-1]}"]) if len(quoted) > 1 else quoted[0]
    return ApiError(
        f"Invalid value: '{value}'. Supported values are: {listed}.", param=param, code="invalid_value"
    )


def too_long(param: str, value: str, limit: int) -> ApiError:
    """Return the error for a text over its limit."""
    return ApiError(
        f"Invalid '{param}': string too long. Expected a string with maximum length {limit}, but got a "
        f"string with length {len(value)} instead.",
        param=param,
        code="string_above_max_length",
    )


def empty_array(param: str) -> ApiError:
    """Return the error for a list that must hold something."""
    return ApiError(
        f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array "
        "instead.",
        param=param,
        code="empty_array",
    )


def check_name(name: str, param: str) -> None:
    """Refuse a name, of a participant or of a function, that holds more than letters, digits, `_` and `-`."""
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise ApiError(
            f"Invalid '{param}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            param=param,
            code="invalid_value",
        )
