"""Seals: how a graph knows what it wrote into state itself.

Every client of a thread can write every key of its state (`Command(update=…)`, `goto`, `update_state`, a
forked checkpoint). What must not be theirs to write, such as a human's approval, carries a seal: a MAC over
the thread and the facts. A fact that was changed, forged or carried into another thread has none that holds.
What a seal cannot tell is that the same facts held earlier in the same thread.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

Key = Callable[[], Awaitable[bytes]]


class Seals:
    """Seals facts, and checks seals.

    Args:
        key: awaited at each use; the same in every process that serves the threads. Default: a random one of
            this object's own, so that no other process knows its seals.
    """

    def __init__(self, key: Key | None = None) -> None:
        self._key = key or _random_key()

    async def seal(self, purpose: str, thread: str, facts: Any) -> str:
        """Return the seal of facts, for one purpose in one thread.

        Args:
            purpose: what the facts are used for; a seal for another purpose does not hold.
            thread: the thread's id.
            facts: plain data, as a checkpoint holds it.
        """
        # JSON, so that no two lists of parts read the same when put together; ASCII, since a model's text may
        # hold halves of surrogate pairs.
        said = json.dumps(["seal", purpose, thread, facts], sort_keys=True, default=repr).encode()
        return hmac.digest(await self._key(), said, hashlib.sha256).hex()

    async def holds(self, seal: object, purpose: str, thread: str, facts: Any) -> bool:
        """Whether these facts were sealed; anything that is no seal does not hold."""
        expected = await self.seal(purpose, thread, facts)
        return isinstance(seal, str) and hmac.compare_digest(
            expected.encode(), seal.encode("utf-8", "replace")
        )


def _random_key() -> Key:
    word = secrets.token_bytes(32)

    async def key() -> bytes:
        return word

    return key
