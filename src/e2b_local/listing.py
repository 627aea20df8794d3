"""Which sandboxes and snapshots a list shows, in which order, and in which pages."""

from __future__ import annotations

import base64
import binascii
import datetime
import urllib.parse
from collections.abc import Callable, Iterable
from typing import TypeVar

from starlette.datastructures import QueryParams

from e2b_local.errors import ApiError
from e2b_local.headers import whole_number
from e2b_local.sandbox import Sandbox
from e2b_local.snapshots import Snapshot

_PAGE = 100
Position = tuple[str, str]
T = TypeVar("T")


def sandbox_page(query: QueryParams, sandboxes: Iterable[Sandbox]) -> tuple[list[Sandbox], str | None]:
    """Return the page a query asks for and the token of the next one, None after the last.

    Raises:
        ApiError: 400, a time, a limit or a token is not readable.
    """
    return _page(query, _matching(query, sandboxes), lambda each: (each.started_at.isoformat(), each.id))


def snapshot_page(query: QueryParams, snapshots: Iterable[Snapshot]) -> tuple[list[Snapshot], str | None]:
    """Return the page a query asks for, as `sandbox_page` does."""
    sandbox_id, name = query.get("sandboxID"), query.get("name")
    found = [
        each
        for each in snapshots
        if sandbox_id in (None, each.sandbox_id) and (name is None or name in each.names)
    ]
    return _page(query, found, lambda each: (each.created_at.isoformat(), each.id))


def _page(
    query: QueryParams, items: Iterable[T], position: Callable[[T], Position]
) -> tuple[list[T], str | None]:
    ascending = query.get("order") == "asc"
    found = sorted(items, key=position, reverse=not ascending)
    if token := query.get("nextToken"):
        # A token names the last one shown, not a number: what is listed comes and goes between two pages.
        last = _decoded(token)
        found = [each for each in found if (position(each) > last if ascending else position(each) < last)]
    asked = whole_number(query.get("limit") or "0")
    if asked is None:
        raise ApiError(400, "limit is not a whole number")
    limit = min(_PAGE, asked or _PAGE)
    page = found[:limit]
    return page, _encoded(position(page[-1])) if len(found) > limit else None


def _matching(query: QueryParams, sandboxes: Iterable[Sandbox]) -> list[Sandbox]:
    # The pairs are quoted twice: each value, then the whole as a form; and once more as a query value.
    quoted = urllib.parse.parse_qsl(query.get("metadata", ""))
    pairs = {urllib.parse.unquote(key): urllib.parse.unquote(value) for key, value in quoted}
    states = {state for value in query.getlist("state") for state in value.split(",") if state}
    template = query.get("template")
    after = _moment(query.get("startedAfter"))
    return [
        each
        for each in sandboxes
        if (not states or each.state.value in states)
        and template in (None, each.request.template)
        and (after is None or each.started_at >= after)
        and all(each.request.metadata.get(key) == value for key, value in pairs.items())
    ]


def _moment(text: str | None) -> datetime.datetime | None:
    if not text:
        return None
    try:
        moment = datetime.datetime.fromisoformat(text.replace(" ", "+"))  # an unquoted plus reads as a space
    except ValueError as exc:
        raise ApiError(400, "startedAfter is not a time") from exc
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def _encoded(position: Position) -> str:
    return base64.urlsafe_b64encode(" ".join(position).encode()).decode()


def _decoded(token: str) -> Position:
    try:
        started, _, identifier = base64.urlsafe_b64decode(token).decode().partition(" ")
    except (ValueError, binascii.Error) as exc:
        raise ApiError(400, "nextToken is not valid") from exc
    return started, identifier
