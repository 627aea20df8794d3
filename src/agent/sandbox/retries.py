"""Sending a request again while the sandbox service does not answer it."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from agent.errors import SandboxConflictError, SandboxQuotaError, SandboxUnreachableError

T = TypeVar("T")

DELAYS_S = (0.2, 0.5, 1.0, 2.0)
"""Pauses before each further try of a request that was not answered."""
QUOTA_DELAYS_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""The same where a limit of the account was reached: others' sandboxes take a while to end."""


class Retries:
    """The one place that tries again; the SDK's own retries are switched off.

    Only requests that may be repeated come here: looking, connecting, creating with an idempotency key,
    pausing, ending. Commands and code never do.
    """

    def __init__(
        self, delays_s: tuple[float, ...] = DELAYS_S, quota_delays_s: tuple[float, ...] = QUOTA_DELAYS_S
    ) -> None:
        self._delays_s = delays_s
        self._quota_delays_s = quota_delays_s

    async def answered(self, request: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the request's answer.

        Raises:
            SandboxError: its last failure, once the tries are used up, or one that trying again cannot mend.
        """
        delays, quota_delays = iter(self._delays_s), iter(self._quota_delays_s)
        while True:
            try:
                return await request()
            except (SandboxUnreachableError, SandboxConflictError):
                delay_s = next(delays, None)
                if delay_s is None:
                    raise
            except SandboxQuotaError:
                delay_s = next(quota_delays, None)
                if delay_s is None:
                    raise
            # Spread, so that runs that were refused together do not come back together.
            await asyncio.sleep(delay_s * random.uniform(0.75, 1.25))
