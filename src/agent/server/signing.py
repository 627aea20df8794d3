"""Signed addresses: what they allow, for which thread, until when.

An `<img>` sends no header, so an address that is to be opened by a browser carries its own permission. A
signature is good for one purpose, one thread and one name, until it expires.
"""

import hashlib
import hmac
import json
import secrets
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode

from agent.kept import kept_word
from agent.settings import Settings

KEPT_IN = Path(".langgraph_api/artifact_key")
"""Beside the development server's own data, relative to the folder it was started in."""

Purpose = Literal["artifact", "upload"]
Verdict = Literal["valid", "expired", "wrong"]


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs and checks with one key; no I/O.

    Args:
        key: secret; whoever has it can open every thread's files.
        ttl_s: how long a new signature holds, in seconds.
    """

    key: bytes
    ttl_s: int

    def address(
        self, base: str, purpose: Purpose, thread_id: str, name: str, *, now: float | None = None
    ) -> str:
        """Return the address that permits a purpose until `ttl_s` from now.

        Args:
            base: the server's public address, without a slash at its end.
            purpose: what is permitted; its routes are under `/<purpose>s/{thread_id}/{name}`.
            thread_id: the thread it is permitted in.
            name: what it is permitted to be done to.
            now: seconds since the epoch; default the clock's.
        """
        expires = str(int(time.time() if now is None else now) + self.ttl_s)
        query = {"expires": expires, "signature": self._signature(purpose, thread_id, name, expires)}
        return f"{base}/{purpose}s/{quote(thread_id, safe='')}/{quote(name, safe='')}?{urlencode(query)}"

    def check(
        self,
        purpose: Purpose,
        thread_id: str,
        name: str,
        *,
        expires: str,
        signature: str,
        now: float | None = None,
    ) -> Verdict:
        """Say whether a signature permits this.

        Args:
            purpose: what is about to be done.
            thread_id: the thread it is done in.
            name: what it is done to.
            expires: as in the address.
            signature: as in the address.
            now: seconds since the epoch; default the clock's.

        Returns:
            `expired` only for what was once validly signed; all else that does not hold is `wrong`.
        """
        expected = self._signature(purpose, thread_id, name, expires)
        if not hmac.compare_digest(expected.encode(), signature.encode()):
            return "wrong"
        return "valid" if int(expires) > (time.time() if now is None else now) else "expired"

    def _signature(self, purpose: str, thread_id: str, name: str, expires: str) -> str:
        # JSON, so that no two lists of parts read the same when put together.
        said = json.dumps([purpose, thread_id, name, expires]).encode()
        return urlsafe_b64encode(hmac.digest(self.key, said, hashlib.sha256)).decode().rstrip("=")


async def signer(settings: Settings, kept_in: Path = KEPT_IN) -> Signer:
    """Return the deployment's signer.

    With ARTIFACT_KEY unset its key is a random one kept in a file. Where several processes serve one
    deployment from different disks, set it: each would refuse the addresses that the others signed.
    """
    if settings.artifact_key:
        key = settings.artifact_key.get_secret_value()
    else:
        key = await kept_word(kept_in, lambda: secrets.token_hex(32))
    return Signer(key.encode(), settings.artifact_ttl_s)
