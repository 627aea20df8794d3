"""Create requests that carry a key are carried out once."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Awaitable, Callable
from typing import Any

from e2b_local.errors import ApiError
from e2b_local.sandbox import Sandbox, State


@dataclasses.dataclass(frozen=True)
class _Seen:
    body: str
    creation: asyncio.Future[Sandbox]

    def spent(self) -> bool:
        """Whether the key may be used anew: its creation failed, or its sandbox is gone."""
        if not self.creation.done():
            return False
        if self.creation.cancelled() or self.creation.exception() is not None:
            return True
        return self.creation.result().state is State.DEAD


class Idempotency:
    """Remembers keys for as long as their sandboxes live."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    async def once(self, key: str, body: dict[str, Any], create: Callable[[], Awaitable[Sandbox]]) -> Sandbox:
        """Return the sandbox that `key` made, making it if this is the first request or the last one is gone.

        Raises:
            ApiError: 422 for a key that was used with another body; or what creating raises.
        """
        text = json.dumps(body, sort_keys=True)
        self._seen = {each: seen for each, seen in self._seen.items() if not seen.spent()}
        seen = self._seen.get(key)
        if seen is None:
            # Its own task: a client that gives up and asks again finds the first request still at work.
            seen = self._seen[key] = _Seen(text, asyncio.ensure_future(create()))
        if seen.body != text:
            raise ApiError(422, "idempotency key was already used with a different request body")
        return await asyncio.shield(seen.creation)
