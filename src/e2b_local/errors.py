"""Errors as the control plane and the sandbox traffic tell them.

ApiError            control plane: {"code", "message"}; both are required or the SDK's own parsing fails
└─ with headers     e.g. Should-Retry: false, or the SDK repeats 429 and 5xx three times by itself
"""

from __future__ import annotations

from starlette.responses import JSONResponse, Response


class ApiError(Exception):
    """A request to the control plane fails with this status; nothing was changed."""

    def __init__(self, status: int, message: str, *, error_code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.error_code = error_code

    def response(self) -> Response:
        """Return the reply."""
        body: dict[str, object] = {"code": self.status, "message": self.message}
        if self.error_code is not None:
            body["error_code"] = self.error_code
        return JSONResponse(body, self.status)


def not_found_traffic(sandbox_id: str) -> Response:
    """Return what tells the SDK that a sandbox is gone: only 502 does, and the text decides the class."""
    return _gateway(sandbox_id, "The sandbox was not found")


def port_closed_traffic(sandbox_id: str, port: int) -> Response:
    """Return what tells the SDK that the sandbox runs and nothing listens on the port."""
    return _gateway(sandbox_id, "The sandbox is running but port is not open", port=port)


def _gateway(sandbox_id: str, message: str, **more: object) -> Response:
    return JSONResponse({"sandboxId": sandbox_id, "message": message, "code": 502, **more}, 502)
