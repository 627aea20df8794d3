"""Signed addresses of files: who may read or write one path without a token, and until when.

With E2B_SANDBOX_URL set the SDK's signed addresses name no sandbox; since every sandbox has its own secret
token, the signature itself tells which one is meant.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Iterable

from starlette.requests import Request

from e2b_local.headers import whole_number
from e2b_local.inbox.wire import OpError
from e2b_local.sandbox import Sandbox


def signed_for(request: Request, sandboxes: Iterable[Sandbox]) -> Sandbox | None:
    """Return the sandbox whose token signed this request, or None.

    Raises:
        OpError: the signature is right and no longer valid.
    """
    query = request.query_params
    given, expiration = query.get("signature", ""), query.get("signature_expiration")
    operation = "read" if request.method == "GET" else "write"
    for sandbox in sandboxes:
        parts = [query.get("path", ""), operation, query.get("username", ""), sandbox.token]
        if expiration is not None:
            parts.append(expiration)
        digest = hashlib.sha256(":".join(parts).encode()).digest()
        right = "v1_" + base64.b64encode(digest).decode().rstrip("=")
        if hmac.compare_digest(right.encode(), given.encode()):
            # Another text than a number is over as well, one with a sign before it too.
            if expiration is not None and (whole_number(expiration) or 0) < time.time():
                raise OpError("unauthenticated", "signature is already expired")
            return sandbox
    return None
