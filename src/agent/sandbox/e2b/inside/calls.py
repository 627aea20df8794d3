"""Takes a request from the environment and answers it on standard output, both JSON.

A request is too long for an argument when it holds a file, so it comes in pieces, compressed.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than this program runs
    from collections.abc import Callable
    from typing import Any

    Operations = dict[str, Callable[..., Any]]


def answer(operations: Operations) -> None:
    """Do what the request asks for; an error is an answer too."""
    pieces: list[str] = []
    while (piece := os.environ.pop(f"AGENT_INPUT_{len(pieces)}", None)) is not None:
        pieces.append(piece)
    request = json.loads(zlib.decompress(base64.b64decode("".join(pieces))))
    try:
        said = {"result": operations[request.pop("operation")](**request)}
    except (OSError, ValueError) as exc:
        said = {"error": type(exc).__name__, "message": worded(exc)}
    sys.stdout.write(json.dumps(said))


def worded(exc: Exception) -> str:
    """Return what an error says, without the number and the path that Python adds."""
    return exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
