"""Kernel messages as the lines the SDK reads from /execute."""

from __future__ import annotations

from typing import Any

_FIELDS = {
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "e2b/data": "data",
    "e2b/chart": "chart",
}


def result(bundle: dict[str, Any], *, main: bool) -> dict[str, Any]:
    """Return the line for a display (`main` False) or for the value of the cell's last expression."""
    line: dict[str, Any] = {"type": "result", "is_main_result": main}
    text = bundle.get("text/plain")
    if text is not None:
        line["text"] = _unquoted(text)
    extra = {}
    for kind, value in bundle.items():
        if kind in _FIELDS:
            line[_FIELDS[kind]] = value
        elif kind != "text/plain":
            extra[kind] = value
    line["extra"] = extra
    return line


def error(name: str, value: str, traceback: list[str] | None = None) -> dict[str, Any]:
    """Return the line for an exception; the traceback is one string, already coloured by nobody."""
    return {"type": "error", "name": name, "value": value, "traceback": "".join(traceback or [])}


def line_of(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the line for one message of the kernel's output channel, or None if it has none."""
    content = message["content"]
    match message["msg_type"]:
        case "stream":
            # The date of the message, as E2B's own server sends it.
            return {
                "type": content["name"],
                "text": content["text"],
                "timestamp": message["header"].get("date", ""),
            }
        case "display_data":
            return result(content["data"], main=False)
        case "execute_result":
            return result(content["data"], main=True)
        case "error":
            return error(content["ename"], content["evalue"], content["traceback"])
        case "execute_input":
            return {"type": "number_of_executions", "execution_count": content["execution_count"]}
    return None


def _unquoted(text: str) -> str:
    # E2B strips the quotes of a string's repr, so that the value of 'abc' reads abc.
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text
