"""Sending a request again while the sandbox service does not answer it."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from agent.errors import (
    SandboxConflictError,
    SandboxError,
    SandboxQuotaError,
    SandboxRateLimitError,
    SandboxUnreachableError,
)
from agent.sandbox.notices import say_waiting

T = TypeVar("T")

DELAYS_S = (0.2, 0.5, 1.0, 2.0)
"""Pauses before each further try of a request that was not answered."""
QUOTA_DELAYS_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""The same where a limit was reached: others' sandboxes take a while to end."""
ANOTHER_S = 1.0
"""Pause before a run makes a sandbox in place of one that it made and lost."""
MAX_ADVISED_S = 120.0
"""How long one request waits in all because the service asks for it."""
PATIENCE_S = 60.0
"""After this long a request that was never answered is not sent again: each try may take its whole limit."""
_WORTH_TELLING_S = 2.0


class Retries:
    """The one place that tries again; the SDK's own retries are switched off.

    Only requests that may be repeated come here: looking, connecting, creating with an idempotency key,
    pausing, ending, reading and writing files. Commands and code never do.

    Args:
        delays_s: pauses where there was no answer, in seconds; one more try each.
        quota_delays_s: the same where a limit was reached. The service's own advice wins where it is longer.
        another_s: pause before a sandbox is made in place of a lost one, in seconds.
        say: told of a wait that a user would notice: seconds, and why.
    """

    def __init__(
        self,
        delays_s: tuple[float, ...] = DELAYS_S,
        quota_delays_s: tuple[float, ...] = QUOTA_DELAYS_S,
        another_s: float = ANOTHER_S,
        say: Callable[[float, SandboxError], None] = say_waiting,
    ) -> None:
        self._delays_s = delays_s
        self._quota_delays_s = quota_delays_s
        self._another_s = another_s
        self._say = say

    async def answered(
        self, request: Callable[[], Coroutine[Any, Any, T]], *, patience_s: float | None = None
    ) -> T:
        """Return the request's answer.

        Args:
            request: sends it once.
            patience_s: for how long it is sent again, in seconds; default `PATIENCE_S` where there is no
                answer, and `MAX_ADVISED_S` where the service asks for waits.

        Raises:
            SandboxError: its last failure, once the tries are used up, or one that trying again cannot mend;
                also where the service asks for longer waits than are taken.
        """
        delays, quota_delays = iter(self._delays_s), iter(self._quota_delays_s)
        began, advised_s = time.monotonic(), 0.0
        most_silent_s, most_advised_s = patience_s or PATIENCE_S, patience_s or MAX_ADVISED_S
        while True:
            try:
                return await request()
            except (SandboxUnreachableError, SandboxConflictError) as exc:
                delay_s = next(delays, None)
                if delay_s is None or time.monotonic() - began - advised_s > most_silent_s:
                    raise
                failed: SandboxError = exc
            except (SandboxQuotaError, SandboxRateLimitError) as exc:
                delay_s = next(quota_delays, None)
                if delay_s is None:
                    raise
                failed = exc
            # Spread, so that runs that were refused together do not come back together.
            delay_s *= random.uniform(0.75, 1.25)
            if failed.retry_after_s is not None:
                advised_s += failed.retry_after_s
                if advised_s > most_advised_s:
                    raise _too_long(failed, most_advised_s) from failed
                delay_s = failed.retry_after_s + min(delay_s, 1.0)
            if delay_s >= _WORTH_TELLING_S:
                self._say(delay_s, failed)
            await asyncio.sleep(delay_s)

    async def before_another(self) -> None:
        """Wait before a sandbox is made in place of one that was lost: what ended it may be over then."""
        await asyncio.sleep(self._another_s * random.uniform(0.75, 1.25))


def _too_long(failed: SandboxError, most_s: float) -> SandboxError:
    words = f"{failed}. The service asks to wait {failed.retry_after_s:.0f} s, and a run waits at most "
    told = type(failed)(f"{words}{most_s:g} s in all: try again then.")
    told.retry_after_s = failed.retry_after_s
    return told
