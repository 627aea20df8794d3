"""Which models there are, which of them reason, and which parameters they refuse.

Worded after what users of the service report in public issues, named where the documentation is silent.
"""

import re
from typing import Any

from support.openai_api.errors import ApiError

Body = dict[str, Any]


def check_known(model: str) -> None:
    """Refuse a name that no model has."""
    if not re.match(r"(gpt-|chatgpt-|o[134](-|$))", model):
        raise ApiError(
            f"The model `{model}` does not exist or you do not have access to it.",
            code="model_not_found",
            status=404,
        )


def reasons(model: str) -> bool:
    """Return whether a model thinks before it answers."""
    return re.match(r"(gpt-[56]|o[134])", model) is not None and "chat" not in model


def check_effort(model: str, effort: str | None, param: str) -> None:
    """Refuse an effort for a model that does not reason."""
    if effort is not None and not reasons(model):
        raise ApiError(
            f"Unsupported parameter: '{param}' is not supported with this model.",
            param=param,
            code="unsupported_parameter",
        )


def check_sampling(body: Body, effort: str | None, names: tuple[str, ...]) -> None:
    """Refuse sampling options for a model that reasons.

    `effort` "none" allows them, as the client assumes too (it keeps `temperature` then).
    """
    if not reasons(body["model"]) or effort == "none":
        return
    for name in names:
        if body.get(name) is not None:
            raise ApiError(
                f"Unsupported parameter: '{name}' is not supported with this model.",
                param=name,
                code="unsupported_parameter",
            )


def check_tools_with_effort(body: Body) -> None:
    """Refuse function tools in chat completions for a model that reasons by default.

    Since gpt-5.4, and also when no effort is sent, since the model's own default counts.
    Source: github.com/openai/openai-openapi/issues/541, github.com/laurent22/joplin/pull/16451.
    """
    model = body["model"]
    if (
        body.get("tools")
        and re.match(r"gpt-(5\.[4-9]|6)", model)
        and reasons(model)
        and body.get("reasoning_effort") != "none"
    ):
        raise ApiError(
            f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. "
            "To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            param="reasoning_effort",
        )
