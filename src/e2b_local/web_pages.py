"""Requests that a web page of a stranger could have its visitor's browser send to a sandbox.

A page may send simple requests anywhere, also to this machine; and by a name of its own that leads to this
machine (DNS rebinding) it may read the answers as well. Programs send no Origin, and use the names given.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from e2b_local.errors import ApiError

_OWN_NAME = "localhost"


def check_host(headers: Headers, domain: str) -> None:
    """Refuse a sandbox's traffic by a name that is none of this server's.

    Args:
        headers: of the request; those that name a sandbox matter.
        domain: below which names lead here, beside `localhost`.

    Raises:
        ApiError: 403, the Host is below another domain.
    """
    host = re.sub(":[0-9]*$", "", headers.get("host", "").lower()).rstrip(".")
    # No page can send these headers to a name that is not its own. One without a dot, which a network of
    # containers has, is nobody's to register.
    if "e2b-sandbox-id" in headers and ("." not in host or host == domain or _is_address(host)):
        return
    if not host.endswith((f".{_OWN_NAME}", f".{domain}")):
        raise ApiError(
            403,
            f"Host must be below {' or '.join(sorted({_OWN_NAME, domain}))}: see e2b-local serve --domain",
        )


def check_origin(headers: Headers, sandbox_id: str) -> None:
    """Refuse what a page asks of a sandbox's daemon or code interpreter, unless it is this machine's own.

    Raises:
        ApiError: 403, the page is another's; or another sandbox's, which strangers may have written.
    """
    origin = headers.get("origin")
    if origin is None:
        # Of a simple GET some browsers say only this.
        foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    else:
        try:
            name = urlsplit(origin).hostname or ""
        except ValueError:
            name = ""
        own = name.partition(".")[0].rpartition("-")[2] == sandbox_id and "." in name
        foreign = not (own or name == _OWN_NAME or _is_loopback(name))
    if foreign:
        raise ApiError(403, "a page of another origin may not use a sandbox's daemon or code interpreter")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback
