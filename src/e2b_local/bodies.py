"""Request bodies that are read whole, up to a limit; what is streamed on (files, a port's traffic) is not."""

from __future__ import annotations

from starlette.requests import Request

from e2b_local.errors import ApiError
from e2b_local.headers import whole_number


async def whole_body(request: Request, most_bytes: int) -> bytes:
    """Return the body of a request.

    Raises:
        ApiError: 413, it is longer than `most_bytes`; where it says so itself, nothing of it was read.
    """
    too_large = ApiError(413, f"the body of a request must not be larger than {most_bytes} bytes")
    promised = request.headers.get("content-length", "0")
    # A length that is no number of ten digits is either none, for the server to refuse, or far too large.
    if (whole_number(promised) or 0) > most_bytes or (promised.isdigit() and len(promised) > 10):
        raise too_large
    whole = bytearray()
    async for piece in request.stream():
        whole += piece
        if len(whole) > most_bytes:
            raise too_large
    return bytes(whole)
