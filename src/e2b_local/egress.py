"""What of the internet a sandbox may reach: the network options of a request, understood."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Mapping
from typing import Any

from e2b_local.errors import ApiError

INGRESS = frozenset({"allowPublicTraffic", "maskRequestHost"})
"""Options for traffic into a sandbox, which an update leaves alone."""
EGRESS = frozenset({"allowOut", "denyOut"})
ACCESS = frozenset({"allow_internet_access", "allowInternetAccess"})
_EVERYWHERE = "0.0.0.0/0"
_LABEL = "[a-z0-9_]([a-z0-9_-]{,61}[a-z0-9_])?"
# The last part of a name is never a number: that would be an address, and a wrong one.
_NAME = re.compile(rf"\*|(\*\.)?({_LABEL}\.)*(?![0-9]+\.?$){_LABEL}\.?", re.IGNORECASE)
# What a program may say; a wildcard fits much that looks different to whoever looks the name up.
_SAID = re.compile(r"[a-z0-9._-]{1,253}", re.IGNORECASE)
_MOST = 1000
_LONGEST = 253


@dataclasses.dataclass(frozen=True)
class Egress:
    """The rules of one sandbox; where they contradict each other, what is allowed wins."""

    rest: bool = False
    """Whether what no rule names can be reached."""
    allowed: tuple[str, ...] = ()
    """IPv4 networks, on any port."""
    denied: tuple[str, ...] = ()
    """IPv4 networks; only where the rest can be reached."""
    names: tuple[str, ...] = ()
    """Names of hosts, on ports 80 and 443; `*.` stands for any name below, `*` for any at all."""

    @property
    def ruled(self) -> bool:
        """Whether there is more to it than all or nothing."""
        return bool(self.allowed or self.denied or self.names)

    def allows(self, name: str) -> bool:
        """Whether a host of this name can be reached; what is no name (with a NUL in it, say) cannot."""
        if not _SAID.fullmatch(name):
            return False
        wanted = name.lower().rstrip(".")
        return any(
            rule == "*" or wanted == rule or (rule.startswith("*.") and wanted.endswith(rule[1:]))
            for rule in self.names
        )


def understood(body: Mapping[str, Any], given: Any) -> Egress | None:
    """Return what a request opens; None if it opens nothing.

    Args:
        body: the network options as the SDK sends them.
        given: allow_internet_access, or None. Unlike in the cloud, None opens nothing by itself.

    Raises:
        ApiError: 400 for options that cannot be kept here. To ignore them would open what the caller closed.
    """
    if not isinstance(given, bool | None):
        raise ApiError(400, "allow_internet_access must be true or false")
    if unknown := {key for key in body if body[key]} - INGRESS - EGRESS - ACCESS:
        raise ApiError(400, f"e2b-local has no network options {', '.join(sorted(unknown))}")
    allowed, names = _parted("allowOut", body)
    denied, unfit = _parted("denyOut", body)
    if unfit:
        raise ApiError(400, f"denyOut: {unfit[0]!r} is no IP address or CIDR block; names cannot be denied")
    if wrong := [name for name in names if len(name) > _LONGEST or not _NAME.fullmatch(name)]:
        raise ApiError(400, f"allowOut: {wrong[0]!r} is no IP address, CIDR block or name of a host")
    nothing_else = given is False or _EVERYWHERE in denied
    if names and not nothing_else:
        raise ApiError(400, f"allowOut: to allow the name {names[0]!r}, deny {_EVERYWHERE} in denyOut")
    if _EVERYWHERE in allowed:
        return Egress(rest=True)
    rest = bool(given) and not nothing_else
    rules = Egress(
        rest,
        # Where the rest is open these matter only against what is denied.
        allowed if denied or not rest else (),
        denied if rest else (),
        tuple(name.lower().rstrip(".") for name in names),
    )
    return rules if rules.rest or rules.ruled else None


def _parted(key: str, body: Mapping[str, Any]) -> tuple[tuple[str, ...], list[str]]:
    """Return the IPv4 networks of a list of rules, and what is none."""
    value = [] if body.get(key) is None else body[key]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value) or len(value) > _MOST:
        raise ApiError(400, f"{key} must be a list of at most {_MOST} strings")
    networks, others = set(), []
    for entry in sorted(set(value)):
        try:
            networks.add(str(ipaddress.ip_network(entry, strict=False)))
        except ValueError:
            others.append(entry)
    if _EVERYWHERE in networks:
        networks.discard("::/0")
    if six := sorted(each for each in networks if ":" in each):
        # A sandbox that has rules has no IPv6 at all; one that has none has all of it.
        raise ApiError(400, f"{key}: e2b-local has no rules for IPv6, such as {six[0]}")
    return tuple(sorted(networks)), others
