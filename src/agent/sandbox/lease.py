"""How long a sandbox still lives unattended, as this process knows it."""

import math
import time
from collections.abc import Callable

MARGIN_S = 15
"""Kept between the end of a command's limit and the end of the lease: requests take time."""


class Lease:
    """The end of a sandbox's server-side lifetime, kept in step with the requests that move it.

    Other processes may have lengthened it meanwhile; a renewal that is not needed does no harm, since
    `connect` never shortens.
    """

    def __init__(self, length_s: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.length_s = length_s
        self._clock = clock
        self._ends = clock() + length_s

    def needed_for(self, work_s: float) -> int | None:
        """Return the lifetime to ask for before work of `work_s` seconds; None while there is enough."""
        left = self._ends - self._clock()
        wanted = work_s + MARGIN_S
        if left >= max(wanted, self.length_s / 2):
            return None
        return math.ceil(max(wanted, self.length_s))

    def renewed(self, lifetime_s: int) -> None:
        """Note that the sandbox now lives for `lifetime_s` seconds more."""
        self._ends = max(self._ends, self._clock() + lifetime_s)
