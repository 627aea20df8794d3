"""What values settings take, and how one that cannot be used is explained."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated
from urllib.parse import urlsplit

from annotated_types import Ge, Le
from pydantic import AfterValidator, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from agent.sandbox.policy import host_rule
from agent.scripted import SCRIPTS


def _http_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an address such as https://api.example.com")
    # The SDK joins addresses with a slash of its own; a second one reaches no route.
    return value.rstrip("/")


def _model_name(value: str) -> str:
    provider, colon, name = value.partition(":")
    if not (colon and provider and name):
        raise ValueError("must be `provider:name`, such as openai:gpt-5.6-luna or scripted:repair+chat")
    if provider == "scripted" and (wrong := set(name.split("+")).difference(SCRIPTS)):
        raise ValueError(f"there is no script {min(wrong)!r}; there are: {', '.join(SCRIPTS)}")
    return value


def _deployment_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", value):
        raise ValueError("must be 1 to 63 letters, digits, dots, underscores or hyphens")
    return value


def _internet(value: str) -> str:
    if value in {"off", "setup", "on"}:
        return value
    try:
        return ",".join(host_rule(host.strip()) for host in value.split(","))
    except ValueError as exc:
        raise ValueError(f"must be off, setup, on, or hosts separated by commas, and {exc}") from exc


NEVER_PASSED = frozenset({"E2B_API_KEY", "ARTIFACT_KEY", "LANGGRAPH_API_KEY", "LANGSMITH_API_KEY"})
"""With these, code in a sandbox could act for the deployment: end sandboxes, approve its own plan."""


def _names(value: str) -> str:
    names = [name.strip() for name in value.split(",")]
    if wrong := [name for name in names if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)]:
        raise ValueError(f"must be names separated by commas, and {wrong[0]!r} is none")
    return ",".join(names)


def _variables(value: str) -> str:
    names = _names(value)
    if kept := sorted(NEVER_PASSED.intersection(names.split(","))):
        raise ValueError(f"{kept[0]} stays in the server: with it, code in a sandbox could act for you")
    return names


_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*|[0-9a-f:]*:[0-9a-f:.]*")  # a name, or an address


def origin_of(address: str) -> str:
    """Return the web origin of an address as browsers write it: lower case, without the scheme's own port.

    Raises:
        ValueError: it has no scheme, no host, or a port that is none.
    """
    parts = urlsplit(address.strip().lower())
    if not (parts.scheme and parts.hostname):
        raise ValueError(f"{address!r} is no address such as https://chat.example.com")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    own = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port not in {None, own} else "")


def _origins(value: str) -> str:
    if value.strip() == "*":
        return "*"
    origins = []
    for given in value.split(","):
        try:
            origin = origin_of(given)
        except ValueError:
            origin = ""
        if not origin or given.strip().lower().rstrip("/") not in {origin, f"{origin}:80", f"{origin}:443"}:
            raise ValueError(
                "must be origins separated by commas, such as https://chat.example.com (without a path), "
                f"or * alone, and {given.strip()!r} is none"
            )
        origins.append(origin)
    return ",".join(origins)


def _hosts(value: str) -> str:
    if value.strip() == "*":
        return "*"
    hosts = [host.strip().strip("[]").lower() for host in value.split(",")]
    if wrong := [host for host in hosts if not _HOST.fullmatch(host)]:
        raise ValueError(
            "must be host names separated by commas, such as agent.example.com (no scheme, no port), or * "
            f"alone, and {wrong[0]!r} is none"
        )
    return ",".join(hosts)


def _sendable(key: SecretStr) -> SecretStr:
    text = key.get_secret_value()
    if not (text.isascii() and text.isprintable()):
        raise ValueError("must be printable ASCII")
    return key


def _long_enough(value: SecretStr) -> SecretStr:
    if len(value) < 16:
        raise ValueError("16 characters or more are needed")
    return value


HttpAddress = Annotated[str, AfterValidator(_http_address)]
ModelName = Annotated[str, AfterValidator(_model_name)]
DeploymentName = Annotated[str, AfterValidator(_deployment_name)]
InternetWords = Annotated[str, AfterValidator(_internet)]
Names = Annotated[str, AfterValidator(_names)]
Variables = Annotated[str, AfterValidator(_variables)]
Origins = Annotated[str, AfterValidator(_origins)]
Hosts = Annotated[str, AfterValidator(_hosts)]
HeaderKey = Annotated[SecretStr, AfterValidator(_sendable)]
SigningKey = Annotated[SecretStr, AfterValidator(_long_enough)]


def bounds(field: FieldInfo) -> tuple[int, int] | None:
    """Return the least and the greatest value a field takes, where it is a whole number."""
    low = next((rule.ge for rule in field.metadata if isinstance(rule, Ge)), None)
    high = next((rule.le for rule in field.metadata if isinstance(rule, Le)), None)
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def explained(error: ErrorDetails, fields: Iterable[FieldInfo], source: Mapping[str, str]) -> str:
    """Return one line about a value that cannot be used: which, and what is allowed; never a secret."""
    variable = error["loc"][0]
    field = next(field for field in fields if field.alias == variable)
    limits = bounds(field)
    wanted = (
        f"a whole number from {limits[0]} to {limits[1]} is needed"
        if limits
        else error["msg"].removeprefix("Value error, ")
    )
    shown = "" if "SecretStr" in str(field.annotation) else f"={source[str(variable)]!r}"
    return f"{variable}{shown} cannot be used: {wanted} (see .env.example)"
