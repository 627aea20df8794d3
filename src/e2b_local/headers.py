"""Numbers and addresses in the headers and the query of a request, which may say anything."""

from __future__ import annotations

import re

from starlette.datastructures import Headers

from e2b_local.errors import ApiError

# Ten digits reach beyond any port, time or count that is asked for, and are quickly read.
_NUMBER = re.compile("[0-9]{1,10}")
_LAST_PORT = 65535
# PORT-ID.DOMAIN; names of hosts know no case.
_FIRST_LABEL = re.compile("([0-9]+)-([a-z0-9]+)")
_MEANT_FOR_A_SANDBOX = re.compile(r"[0-9]+-|.*\.localhost$")


def whole_number(text: str) -> int | None:
    """Return the number that up to ten digits spell, or None.

    `str.isdigit` is no such test: it is true of `²`, with which `int` fails, and of digits without end.
    """
    return int(text) if _NUMBER.fullmatch(text) else None


def sandbox_address(headers: Headers) -> tuple[str, int] | None:
    """Return the sandbox and the port that a request is for, None if it is for the control plane.

    Raises:
        ApiError: 400, it is for a sandbox, and the address is none.
    """
    sandbox_id, port = headers.get("e2b-sandbox-id"), headers.get("e2b-sandbox-port")
    if sandbox_id is not None or port is not None:
        if sandbox_id is None or port is None:
            raise ApiError(400, "E2b-Sandbox-Id and E2b-Sandbox-Port must both be given")
        return sandbox_id, _port(port, "E2b-Sandbox-Port")
    host = headers.get("host", "").lower()
    if not host.isascii():
        raise ApiError(400, "Host is no name of a host")
    name = re.sub(":[0-9]*$", "", host)
    if not _MEANT_FOR_A_SANDBOX.match(name):
        return None
    match = _FIRST_LABEL.fullmatch(name.partition(".")[0])
    if match is None:
        raise ApiError(400, "Host must be PORT-ID of a sandbox and a domain")
    return match[2], _port(match[1], "Host")


def _port(text: str, where: str) -> int:
    port = whole_number(text)
    if port is None or not 1 <= port <= _LAST_PORT:
        raise ApiError(400, f"{where} has no valid port: it must be a number from 1 to {_LAST_PORT}")
    return port
